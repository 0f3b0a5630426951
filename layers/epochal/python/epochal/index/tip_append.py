"""How the index appends to a stream: one conditional write of the Tip, on exactly the Tip that is known.

    too heavy          a calf is put first, then the Tip is written
    refused            the Tip that came back is the new state to decide on, no second read (DESIGN §5.2)

Every write names the exact state it changes (etag, or absence), so a request that lands late is refused. A calf is put
before the Tip lets go of its events, so between the two both hold them, and a crash leaves an overlap that readers drop
by index (DESIGN §5.4). Whoever else writes such streams brings a `CalfRule` and says what a refusal means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeAlias

from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.index.checkpoints import calf_key, tip_key
from epochal.index.tip import (
    StoredSpan,
    Tip,
    advance,
    append_id,
    cursor_at,
    event_bytes,
    events_attributes,
    load_tip,
    read_span,
    read_tip,
    span_size,
    unfolds_size,
    write_event,
    write_unfold,
)
from epochal.layout import streams
from epochal.layout.streams import EncodedEvent, EncodedUnfold, Rejected, Written
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import format_ticks, from_unix_nanoseconds
from epochal.model.versions import MAX_VERSION, Token, version_of
from epochal.plan.conditions import Absent, All, AnyOf, Condition, equals
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Extend, Overflow, Put, Refusal, Set, Steps, Update
from epochal.plan.values import (
    WRITE_UNIT,
    AttributeValue,
    attribute_size,
    item_size,
    number,
    number_size,
    sequence,
    text,
    write_units,
)

TipOrToken: TypeAlias = streams.Known[Tip]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ids:
    """The identity of one write: a fresh etag, a fresh append id, and its time."""

    etag: str
    append_id: bytes
    timestamp: str

    @classmethod
    def drawn(cls, nanoseconds: int, fresh: Callable[[int], bytes]) -> Ids:
        """Draw new ids from the time in nanoseconds since 1970, and random bytes."""
        timestamp = format_ticks(from_unix_nanoseconds(nanoseconds))
        return cls(etag=fresh(16).hex(), append_id=fresh(16), timestamp=timestamp)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireBatch:
    """One append, all or nothing, in its stored form.

    Attributes:
        stream: name of the stream.
        span: the events, as if they began the stream; may be empty if there are unfolds.
        size: bytes that the span takes in an item, its lists included.
        unfolds: unfolds that replace those stored; None keeps them. Their versions are set once the index is known.
        etag: 32 hex digits, fresh; the same over all retries of this append. See `etag_at`.
        append_id: 16 bytes. The first 8 distinguish appends, the rest their contents.
        keyed: whether `append_id` stems from a caller's idempotency key, so that another process may have written it.
    """

    stream: str
    span: StoredSpan
    size: int
    unfolds: tuple[EncodedUnfold, ...] | None
    etag: str
    append_id: bytes
    keyed: bool = False

    @property
    def count(self) -> int:
        """Number of events."""
        return len(self.span.events)

    def etag_at(self, first: int) -> str:
        """Return the etag that the append leaves if its events begin at index `first`.

        Under a key it is derived, because no other write has that append id at that index: whoever repeats the call
        knows the etag that an earlier call left, and can tell that state from what others have made of it since.
        """
        if not self.keyed or not self.count:
            return self.etag
        return keyed_etag(self.append_id, first)


def keyed_etag(append_id: bytes, first: int) -> str:
    """Derive the etag that an append under a key leaves if its events begin at index `first`."""
    return hashlib.sha256(append_id + first.to_bytes(8, "big", signed=True)).hexdigest()[:32]


def batch_of(
    stream: str,
    events: Iterable[EncodedEvent],
    unfolds: tuple[EncodedUnfold, ...] | None = None,
    *,
    etag: str,
    append_id: bytes,
    keyed: bool = False,
) -> WireBatch:
    """Encode events as one append, with the append id on the first of them."""
    marked = [event._replace(append_id=append_id if k == 0 else None) for k, event in enumerate(events)]
    span = StoredSpan(
        base=0, events=tuple(map(write_event, marked)), types=tuple(event.type for event in marked)
    )
    return WireBatch(
        stream=stream,
        span=span,
        size=span_size(span),
        unfolds=unfolds,
        etag=etag,
        append_id=append_id,
        keyed=keyed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedByTip:
    """A write was refused because the stream has this Tip now.

    `ambiguous` says that an earlier try of the same request may have been applied.
    """

    tip: Tip | None
    ambiguous: bool = False


def append_on(table: str, batch: WireBatch, known: TipOrToken) -> Steps[Written | Rejected[Tip]]:
    """Append on exactly the Tip that is known (None: no stream yet); any other Tip rejects it.

    A rejection returns the current Tip. If a response was lost and others have written since, this was applied all the
    same: whoever appends to the index decides again on the current state, and finds it.
    """
    result = yield from attempt(table, batch, known, BY_COST)
    if isinstance(result, Token):
        return Written(first=result.version - batch.count, version=result.version, token=result)
    tip = result.tip
    if tip is not None and tip.etag == batch.etag_at(tip.version - batch.count):
        return Written(first=tip.version - batch.count, version=tip.version, token=tip.token())
    return Rejected(head=tip)


def tip_after(batch: WireBatch, known: Tip | None, token: Token) -> Tip:
    """Compute the Tip after an append on a known Tip that returned this token, without reading it."""
    before = Tip(stream=batch.stream, span=StoredSpan(base=0)) if known is None else known
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


def attempt(table: str, batch: WireBatch, known: TipOrToken, rule: CalfRule) -> Steps[Token | BlockedByTip]:
    """Try an append once: return the token that it leaves, or the Tip that blocked it.

    Raises:
        TooLarge: the events do not fit an item even with a Tip of their own.
        InvalidInput: the stream is full.
    """
    if known is None:
        put, token = create_tip(table, batch)
        return _result_of((yield put), token)
    if known.version + batch.count > MAX_VERSION:
        raise InvalidInput("events", f"a stream holds at most {MAX_VERSION:,} events")
    if batch.count and rule.calves(token_of(known), growth_of(batch, known)):
        return (yield from calve_and_write(table, batch, known, rule))
    update, token = extend_tip(table, batch, known)
    reply = yield update
    if isinstance(reply, Overflow):
        return (yield from calve_and_write(table, batch, known, rule))
    return _result_of(reply, token)


def calve_and_write(
    table: str, batch: WireBatch, known: Tip | Token, rule: CalfRule
) -> Steps[Token | BlockedByTip]:
    """Move the Tip's events into a calf, then write; return the token left, or the blocking Tip."""
    tip = known if isinstance(known, Tip) else (yield from load_tip(table, batch.stream))
    if tip is None or (tip.etag, tip.version) != (known.etag, known.version):
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
    """Convert the reply to a write into the token that it leaves, or the Tip that blocked it."""
    if isinstance(reply, Done):
        return token
    if isinstance(reply, Overflow):
        raise TooLarge("events", token.size, ITEM_BYTES)
    tip = None if reply.item is None else read_tip(reply.item)
    return BlockedByTip(tip=tip, ambiguous=reply.ambiguous)


def calve(table: str, tip: Tip) -> Steps[bool]:
    """Write the Tip's events into calves; return False if the Tip is stale.

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
        raise CorruptData(f"{reply.item['p']['S']}: the calf {rest.base} holds no events")
    return None if calf.next > rest.next else rest.since(calf.next)


# The writes of an append, as plans, and the token that each leaves behind. Pure arithmetic on FORMATS §1.

_OPEN = AnyOf((Absent("z"), equals("z", number(0))))
"""No tombstone: those have an etag too, which a load of a deleted stream returns."""

_EMPTY_LISTS = attribute_size("e", sequence(())) + attribute_size("c", sequence(()))


def token_of(known: Tip | Token) -> Token:
    """Return a Tip or token as a token, which has the figures that the calving rule needs."""
    return known.token() if isinstance(known, Tip) else known


def unfolds_of(batch: WireBatch, version: int) -> tuple[AttributeValue, ...] | None:
    """Encode the batch's unfolds as made from `version`."""
    if batch.unfolds is None:
        return None
    return tuple(write_unfold(replace(unfold, version=version)) for unfold in batch.unfolds)


def growth_of(batch: WireBatch, known: Tip | Token) -> Growth:
    """Return what the calving rule must know about a batch."""
    unfolds = unfolds_of(batch, known.version + batch.count)
    return Growth(
        growth=batch.size - _EMPTY_LISTS,
        events=batch.count,
        unfolds=token_of(known).unfolds if unfolds is None else unfolds_size(unfolds),
        name=len(batch.stream),
    )


def create_tip(table: str, batch: WireBatch) -> tuple[Put, Token]:
    """Build the first write of a stream, refused if it exists, and the token that it leaves."""
    unfolds = unfolds_of(batch, batch.count) or ()
    item = {
        **tip_key(batch.stream),
        "n": number(batch.count),
        "a": number(batch.count),
        "etag": text(batch.etag_at(0)),
        **events_attributes(batch.span),
        **({"u": sequence(unfolds)} if unfolds else {}),
    }
    taken = unfolds_size(unfolds)
    bare = Token(version=0, size=item_size(item) - batch.size - taken)
    return Put(table=table, item=item, condition=Absent("i")), _token(batch, bare, taken)


def extend_tip(table: str, batch: WireBatch, known: Tip | Token) -> tuple[Update, Token]:
    """Build the update that appends to the Tip's events, and the token that it leaves."""
    changes = [Extend(name, value) for name, value in events_attributes(batch.span).items()]
    return _update(table, batch, known, token_of(known), changes)


def restart_tip(table: str, batch: WireBatch, tip: Tip) -> tuple[Update, Token]:
    """Build the update that leaves only new events in the Tip after calving, and its token."""
    events = events_attributes(batch.span)
    changes = [Set(name, value) for name, value in events.items()]
    calved = tip.calved + event_bytes(tip.span)
    changes.append(Set("b", number(calved)))
    before = tip.token()
    size = before.size - before.carried + _calved_size(calved) - _calved_size(tip.calved)
    emptied = replace(before, size=size, carried=0, events=0, appends=0)
    return _update(table, batch, tip, emptied, changes, removes=() if events else ("e", "c"))


def _calved_size(calved: int) -> int:
    """Return the bytes that the count of calved bytes takes in an item."""
    return attribute_size("b", number(calved)) if calved else 0


def put_calf(table: str, stream: str, span: StoredSpan) -> Put:
    """Build the write of a calf with a Tip's events, refused if there is one at its base."""
    item = {**calf_key(stream, span.base), "n": number(span.next), **events_attributes(span)}
    return Put(table=table, item=item, condition=Absent("i"))


def retry_etag(etag: str, tip: Tip | None) -> str:
    """Derive the etag for another try after a refusal by this Tip.

    The last try may have been applied unnoticed. If both left one etag, a token of the one would pass for a token of
    the other, and indices would be given out twice.
    """
    over = "" if tip is None else f"{tip.version} {tip.etag}"
    return hashlib.sha256(f"{etag} {over}".encode()).hexdigest()[:32]


def unchanged_condition(etag: str | None, version: int) -> Condition:
    """Build the condition that a Tip is still the known one, by etag and version.

    Without an etag (a foreign item) its version must do. With one the version is checked too, because indices are given
    out from it, and a token may be forged.
    """
    same_etag = Absent("etag") if etag is None else equals("etag", text(etag))
    return All((same_etag, equals("n", number(version))))


def _update(
    table: str,
    batch: WireBatch,
    known: Tip | Token,
    before: Token,
    changes: Sequence[Set | Extend],
    *,
    removes: tuple[str, ...] = (),
) -> tuple[Update, Token]:
    """Build an update of the known Tip, and the token that it leaves.

    `before` has the figures to which the new events are added.
    """
    version = before.version + batch.count
    unfolds = unfolds_of(batch, version)
    counters = (
        Set("n", number(version)),
        Set("a", number(batch.count)),
        Set("etag", text(batch.etag_at(before.version))),
    )
    update = Update(
        table=table,
        key=tip_key(batch.stream),
        sets=(*counters, *changes, *((Set("u", sequence(unfolds)),) if unfolds else ())),
        removes=(*removes, "u") if unfolds == () else removes,
        condition=All((unchanged_condition(known.etag, known.version), _OPEN)),
    )
    return update, _token(batch, before, before.unfolds if unfolds is None else unfolds_size(unfolds))


def _token(batch: WireBatch, before: Token, unfolds: int) -> Token:
    """Compute the token after adding a batch to a Tip with these figures."""
    grown = batch.size - (_EMPTY_LISTS if before.events and batch.count else 0)
    return Token(
        version=before.version + batch.count,
        etag=batch.etag_at(before.version),
        size=before.size + grown + unfolds - before.unfolds,
        carried=before.carried + grown,
        unfolds=unfolds,
        events=before.events + batch.count,
        appends=before.appends + bool(batch.count),
    )


# When events leave the Tip: never too early, because calving costs, nor too late, because weight does.
#
# Every append is charged by the whole Tip, so each carried event taxes the appends after it; calving writes the carried
# events once more and is charged for the old Tip. The best moment is a stopping problem. `ByCost` solves it for a
# stream that goes on as the Tip shows it: with `rate` the least average cost of an append over a whole cycle from calf
# to calf, it calves now unless some number of further appends, at `rate` each, makes calving later cheaper. A pure
# function of a `Token`, which is why a writer that holds only a token can decide without reading. Measured against the
# offline optimum by `bench/calving.py`.

ROOM: Final = 8 * 1024
"""Kept free below the item limit for keys, counters and what sizes in a token may be off by."""

_HORIZON: Final = 64

_LEAST: Final = 32
"""No append takes less. A token comes from outside and may say anything; this bounds how long one is reckoned with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What is about to be written.

    Attributes:
        growth: bytes by which the new events grow a Tip that carries others.
        events: number of new events.
        unfolds: bytes of the unfolds that the Tip will have.
        name: bytes of the stream's name.
    """

    growth: int
    events: int
    unfolds: int
    name: int


class CalfRule(Protocol):
    """When events leave a Tip, and how."""

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


LARGE: Final = 3_500
"""Bytes of events in a Tip that the next append always puts into a calf: so a reader at the tail may look for that
calf, instead of at a Tip that costs more than the least. Such a Tip has had one large append, and a small one on it
would cost as much again."""


class _ByCost:
    """Calves when that is cheaper than to go on, in two writes."""

    calve = staticmethod(calve_and_update)

    def calves(self, tip: Token, new: Growth) -> bool:
        return tip.carried > LARGE or calf_pays(tip, new, factor=1)


BY_COST: Final = _ByCost()


def calf_pays(tip: Token, new: Growth, factor: int) -> bool:
    """Return whether calving now is cheaper than appending to the Tip as it is.

    `factor` is 2 if calf and Tip are written in one transaction.
    """
    if tip.events == 0:
        return False
    if overflows(tip, new):
        return True
    costs = _costs(tip, new, factor)
    average = max(_LEAST, (tip.carried + new.growth) / (tip.appends + 1))
    return _waiting_is_dearer(costs, tip.carried, new.growth, average)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Costs:
    """Write units of a Tip's possible next writes.

    Attributes:
        fixed: bytes of the Tip without events.
        calf: bytes of a calf without events.
        factor: 2 if calf and Tip are written in one transaction.
    """

    fixed: int
    calf: int
    factor: int

    def append(self, carried: float) -> int:
        """Return the units of an append that leaves the Tip with `carried` bytes of events."""
        return write_units(int(self.fixed + carried))

    def calve(self, carried: float, least: float = 0) -> int:
        """Return the units of a calf of `carried` bytes and the update, charged by the larger Tip."""
        update = write_units(int(self.fixed + max(carried, least)))
        return self.factor * (write_units(int(self.calf + carried)) + update)


def _costs(tip: Token, new: Growth, factor: int) -> _Costs:
    """Return the costs of writes to this Tip."""
    bare = tip.size - tip.carried - tip.unfolds
    keys = 3 + new.name + number_size(str(tip.version - tip.events)) + number_size(str(tip.version))
    return _Costs(fixed=bare + new.unfolds, calf=keys, factor=factor)


def overflows(tip: Token, new: Growth) -> bool:
    """Return whether a Tip has no room for what is about to be written."""
    return tip.size - tip.unfolds + new.unfolds + new.growth > ITEM_BYTES - ROOM


def _waiting_is_dearer(costs: _Costs, carried: float, growth: int, average: float) -> bool:
    """Return whether calving later, after any number of further appends, would cost more than now."""
    rate = _rate(costs, average)
    now = costs.calve(carried, least=growth)
    spent = 0.0
    for step in range(min(_HORIZON, 2 + int(WRITE_UNIT // average))):
        carried += growth if step == 0 else average
        spent += costs.append(carried) - rate
        if spent + costs.calve(carried) <= now:
            return False
    return True


def _rate(costs: _Costs, average: float) -> float:
    """Return the least average units of an append over a whole cycle from calf to calf.

    Appends are assumed to have `average` bytes each.
    """
    best, spent, carried, appends = float("inf"), 0.0, 0.0, 0
    while carried < ITEM_BYTES:
        appends += 1
        carried += average
        if appends > 1:
            spent += costs.append(carried)
        cycle = (spent + costs.calve(carried)) / appends
        if cycle > 1.5 * best:
            break
        best = min(best, cycle)
    return best
