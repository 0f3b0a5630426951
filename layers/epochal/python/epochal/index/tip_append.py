"""How the index appends to a stream: one conditional write of the Tip, on exactly the Tip that is known.

    too heavy          a calf is put first, then the Tip is written
    refused            the Tip that came back is the new state to decide on, no second read (DESIGN §5.2)

Every write names the exact state it changes (etag, or absence), so a request that lands late is refused. A calf is put
before the Tip lets go of its events, so between the two both hold them, and a crash leaves an overlap that readers drop
by index (DESIGN §5.4). Other writers of such streams supply a `CalfRule`, and interpret refusals themselves.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias

from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.index.calf_costs import LARGE, Growth, calf_pays
from epochal.index.tip import (
    StoredSpan,
    Tip,
    advance,
    append_id,
    cursor_at,
    event_bytes,
    load_tip,
    read_span,
    read_tip,
)
from epochal.index.tip_writes import create_tip, extend_tip, growth_of, put_calf, restart_tip, token_of
from epochal.index.wire_batch import WireBatch
from epochal.layout import streams
from epochal.layout.outcomes import conflict_at
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tokens import MAX_VERSION, Token, version_of
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Overflow, Refusal, Steps, Update

TipOrToken: TypeAlias = streams.Known[Tip]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedByTip:
    """A write was refused because the stream has this Tip now.

    `ambiguous` says that an earlier try of the same request may have been applied.
    """

    tip: Tip | None
    ambiguous: bool = False


def append_on(table: str, batch: WireBatch, known_head: TipOrToken) -> Steps[Appended | Conflict]:
    """Append if the Tip is still the known one (None: no stream yet); return the result, or a conflict.

    The conflict has the current Tip. If a response was lost and others have written since, the append may
    have been applied although this returns a conflict: whoever appends to the index decides again on the current
    state, and finds it.
    """
    result = yield from attempt(table, batch, known_head, BY_COST)
    if isinstance(result, Token):
        return Appended(first=result.version - batch.count, version=result.version, token=result)
    tip = result.tip
    if tip is not None and tip.etag == batch.etag_at(tip.version - batch.count):
        return Appended(first=tip.version - batch.count, version=tip.version, token=tip.token())
    return conflict_at(tip)


def tip_after(batch: WireBatch, known_head: Tip | None, token: Token) -> Tip:
    """Compute the Tip after an append on a known Tip that returned this token, without reading it."""
    before = Tip(stream=batch.stream, span=StoredSpan(base=0)) if known_head is None else known_head
    kept_span, calved = before.span, before.calved
    if token.events == batch.count:
        kept_span, calved = kept_span.since(kept_span.next), calved + event_bytes(kept_span)
    span = StoredSpan(
        base=kept_span.base,
        events=kept_span.events + batch.span.events,
        types=kept_span.types + batch.span.types,
    )
    return replace(before, span=span, etag=token.etag, calved=calved, latest=batch.count, size=token.size)


def append(table: str, batch: WireBatch) -> Steps[bool]:
    """Append events to the end of a stream, whatever it contains, exactly once."""
    tip = yield from load_tip(table, batch.stream)
    return (yield from append_once(table, batch, tip, version_of(tip)))


def append_once(table: str, batch: WireBatch, tip: Tip | None, since: int) -> Steps[bool]:
    """Append events to the end of a stream unless they are there already; return whether this call did.

    They are looked for by their append id from index `since` on.
    """
    ambiguous = False
    while True:
        if tip is not None and (yield from _has_append(table, tip, batch.append_id, since)):
            return ambiguous
        result = yield from attempt(table, batch, tip, BY_COST)
        if isinstance(result, Token):
            return True
        since, tip, ambiguous = version_of(tip), result.tip, ambiguous or result.ambiguous


def _has_append(table: str, tip: Tip, target: bytes, since: int) -> Steps[bool]:
    """Return whether a stream contains an append of this id from index `since` on."""
    if any(append_id(event) == target for event in tip.span.events):
        return True
    cursor = cursor_at(tip, since)
    while cursor.at < tip.span.base:
        part = yield from advance(table, cursor)
        if any(append_id(event) == target for span in part.spans for event in span.events):
            return True
        cursor = part.cursor
    return False


def attempt(
    table: str, batch: WireBatch, known_head: TipOrToken, rule: CalfRule
) -> Steps[Token | BlockedByTip]:
    """Try an append once; return the new token, or the Tip that refused the append.

    Raises:
        TooLarge: the events do not fit an item even with a Tip of their own.
        InvalidInput: the stream is full.
    """
    if known_head is None:
        put, token = create_tip(table, batch)
        return _result_of((yield put), token)
    if known_head.version + batch.count > MAX_VERSION:
        raise InvalidInput("events", f"a stream holds at most {MAX_VERSION:,} events")
    if batch.count and rule.calves(token_of(known_head), growth_of(batch, known_head)):
        return (yield from calve_and_write(table, batch, known_head, rule))
    update, token = extend_tip(table, batch, known_head)
    reply = yield update
    if isinstance(reply, Overflow):
        return (yield from calve_and_write(table, batch, known_head, rule))
    return _result_of(reply, token)


def calve_and_write(
    table: str, batch: WireBatch, known_head: Tip | Token, rule: CalfRule
) -> Steps[Token | BlockedByTip]:
    """Move the Tip's events into a calf, then append; return the new token, or the Tip that refused it."""
    tip = known_head if isinstance(known_head, Tip) else (yield from load_tip(table, batch.stream))
    if tip is None or (tip.etag, tip.version) != (known_head.etag, known_head.version):
        return BlockedByTip(tip=tip)
    update, token = restart_tip(table, batch, tip)
    reply = yield from rule.calve(table, tip, update)
    if reply is None:
        return BlockedByTip(tip=(yield from _read_newer_tip(table, tip)))
    return _result_of(reply, token)


def _read_newer_tip(table: str, stale: Tip) -> Steps[Tip | None]:
    """Read the Tip that has replaced a stale one; raise `CorruptData` if the Tip is unchanged.

    Only calves showed that it is stale.
    """
    tip = yield from load_tip(table, stale.stream)
    if tip is not None and (tip.etag, tip.version) == (stale.etag, stale.version):
        raise CorruptData(f"{tip.stream}: a calf reaches beyond the Tip")
    return tip


def _result_of(reply: Done | Refusal | Overflow, token: Token) -> Token | BlockedByTip:
    """Return the token after a write, or the Tip that refused it; raise `TooLarge` if the item overflowed."""
    if isinstance(reply, Done):
        return token
    if isinstance(reply, Overflow):
        raise TooLarge("events", token.size, ITEM_BYTES)
    tip = None if reply.item is None else read_tip(reply.item)
    return BlockedByTip(tip=tip, ambiguous=reply.ambiguous)


def calve(table: str, tip: Tip) -> Steps[bool]:
    """Write the Tip's events into calves, without changing the Tip; return False if the Tip is stale.

    Another writer may have calved a part already: the refusal returns that calf, and only what follows it remains to be
    written. A calf that reaches beyond the Tip shows that the Tip is stale.
    """
    rest = tip.span
    while rest.events:
        reply = yield put_calf(table, tip.stream, rest)
        if isinstance(reply, Done):
            return True
        remaining = uncalved(reply, rest)
        if remaining is None:
            return False
        rest = remaining
    return True


def uncalved(reply: Refusal, rest: StoredSpan) -> StoredSpan | None:
    """Return the events that an existing calf leaves to be calved; None if it shows that the Tip is stale."""
    if reply.item is None:
        return None
    calf = read_span(reply.item)
    if calf.next <= rest.base:
        raise CorruptData(f"{reply.item['p']['S']}: the calf {rest.base} contains no events")
    return None if calf.next > rest.next else rest.since(calf.next)


class CalfRule(Protocol):
    """Decides when events move from a Tip into calves, and moves them."""

    def calves(self, tip: Token, new: Growth) -> bool:
        """Return whether to calve the Tip's events before writing `new`."""

    def calve(self, table: str, tip: Tip, update: Update) -> Steps[Done | Refusal | Overflow | None]:
        """Move the Tip's events into calves, and update it; return None if the Tip is stale."""


def calve_and_update(table: str, tip: Tip, update: Update) -> Steps[Done | Refusal | Overflow | None]:
    """Write the calf, then update the Tip; return None if the Tip is stale."""
    if not (yield from calve(table, tip)):
        return None
    reply: Done | Refusal | Overflow = yield update
    return reply


class _ByCost:
    """Moves events into a calf when that is cheaper than leaving them in the Tip, in two writes."""

    calve = staticmethod(calve_and_update)

    def calves(self, tip: Token, new: Growth) -> bool:
        return tip.carried > LARGE or calf_pays(tip, new, factor=1)


BY_COST: Final = _ByCost()
