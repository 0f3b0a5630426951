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

from collections.abc import Iterator
from enum import Enum
from typing import Final, Literal

from epochal.contrib.equinox import CALVING, TIP_BYTES, EquinoxOptions
from epochal.errors import InvalidInput, TooLarge
from epochal.index.calf_costs import Growth, calf_pays, overflows
from epochal.index.tip import StoredSpan, Tip, append_id, load_tip, query_calves, read_span, read_tip
from epochal.index.tip_append import (
    BlockedByTip,
    TipOrToken,
    attempt,
    calve_and_update,
    calve_and_write,
    uncalved,
)
from epochal.index.tip_writes import create_tip, extend_tip, put_calf, retry_etag
from epochal.index.wire_batch import WireBatch, keyed_etag
from epochal.layout import decision_keys, once
from epochal.layout.key_records import KeyRecord, RecordContents, done_record, read_record
from epochal.layout.once import UnfoldsRefused
from epochal.layout.outcomes import conflict_at, refusing_head
from epochal.layout.streams import accepts, decided_events
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.versions import (
    UNREAD,
    Appended,
    AtVersion,
    Conflict,
    Expected,
    ExpectedVersion,
    Outcome,
    Token,
    Undetermined,
    Unread,
    expected_head,
    version_of,
)
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Items, Overflow, Refusal, Steps, Transact, Update
from epochal.plan.values import Item, Key
from epochal.settings import Settings, variable

# When a Tip's events go into a calf, and how: when that is cheapest (`index.calf_costs.calf_pays`), or at limits.
#
# `Fixed` calves by bytes and events, as Equinox does; for tables that Equinox applications write too. For these, calf
# and Tip are written in one transaction: there is no overlap then, at twice the price.

Mode = Literal["two-step", "transactional"]
"""Whether a calf and its Tip are written one after the other, or in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _InMode:
    """Base of the rules of calving: puts calves in two steps or in one transaction.

    Attributes:
        mode: whether a calf and its Tip are written one after the other, or in one transaction.
    """

    mode: Mode

    def calve(self, table: str, tip: Tip, update: Update) -> Steps[Done | Refusal | Overflow | None]:
        """Put a Tip's events into calves, and update the Tip; return None if the Tip is stale."""
        steps = calve_at_once if self.mode == "transactional" else calve_and_update
        return steps(table, tip, update)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCost(_InMode):
    """A rule of calving that moves events out of the Tip when that is cheaper than to leave them.

    Attributes:
        mode: whether a calf and its Tip are written one after the other, or in one transaction.
    """

    mode: Mode = "two-step"

    def calves(self, tip: Token, new: Growth) -> bool:
        """Whether to move the events of the newest item, the Tip, into an item of their own before `new`.

        Args:
            tip: token of the stream's state, with the sizes of its Tip.
            new: what the append adds to the Tip.
        """
        return calf_pays(tip, new, factor=2 if self.mode == "transactional" else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(_InMode):
    """A rule of calving that moves events out of the Tip when it would exceed `max_bytes` of events or `max_events`.

    Attributes:
        max_bytes: largest number of bytes of events that stay in a Tip.
        max_events: largest number of events that stay in a Tip; None for any number.
        mode: whether a calf and its Tip are written one after the other, or in one transaction.
    """

    max_bytes: int = TIP_BYTES
    max_events: int | None = None
    mode: Mode = "transactional"

    def calves(self, tip: Token, new: Growth) -> bool:
        """Whether to move the events of the newest item, the Tip, into an item of their own before `new`.

        Args:
            tip: token of the stream's state, with the sizes of its Tip.
            new: what the append adds to the Tip.
        """
        if tip.events == 0:
            return False
        if overflows(tip, new) or tip.carried + new.growth > self.max_bytes:
            return True
        return self.max_events is not None and tip.events + new.events > self.max_events


Calving = ByCost | Fixed
"""The rule that decides when events are moved out of a stream's Tip."""


def calving_of(settings: Settings) -> Calving:
    """Make the rule of calving of a deployment's settings.

    If Equinox applications use the table too, calf and Tip are one transaction, and the rule is Equinox's unless
    another is chosen.

    Raises:
        InvalidInput: there is no rule of the name in the settings.
    """
    chosen = settings.of_plugin(EquinoxOptions)
    if chosen.calving not in CALVING:
        raise InvalidInput(variable("calving"), f"must be one of {', '.join(CALVING)}")
    mode: Mode = "transactional" if chosen.equinox else "two-step"
    if chosen.is_fixed:
        most = chosen.calving_max_events or None
        return Fixed(max_bytes=chosen.calving_max_bytes, max_events=most, mode=mode)
    return ByCost(mode=mode)


def calve_at_once(table: str, tip: Tip, update: Update) -> Steps[Done | Refusal | Overflow | None]:
    """Put a Tip's events into a calf and update the Tip in one transaction; return None if it is stale.

    If part of the events are in calves already, the transaction is tried again with the rest.
    """
    rest, doubtful = tip.span, False
    while True:
        writes = (put_calf(table, tip.stream, rest), update) if rest.events else (update,)
        reply: Done | Refusal | Overflow = yield Transact(writes=writes)
        if not isinstance(reply, Refusal):
            return reply
        # Events that are in a calf already may have got there by a transaction of ours whose response was lost.
        doubtful = doubtful or reply.ambiguous
        if reply.failed[-1]:
            return Refusal(items=reply.items[-1:], ambiguous=doubtful)
        remaining = uncalved(reply, rest)
        if remaining is None:
            return None
        rest = remaining


def append(
    table: str,
    batch: WireBatch,
    expected: ExpectedVersion,
    calving: Calving,
    start: TipOrToken | Unread = UNREAD,
) -> Steps[Outcome]:
    """Append a batch to a stream if it is at the expected version, and try again after races.

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
    table: str, batch: WireBatch, known: TipOrToken, calving: Calving, *, repeatable: bool = False
) -> Steps[Outcome]:
    """Append a batch on exactly the Tip that is known; any other Tip comes with a conflict.

    Args:
        known: Tip or token that the stream must have; None if there must be no stream yet.
        repeatable: whether unfolds alone may be written again if nobody can tell whether they were, and events under a
            key may have been written by another process at a later index than on the known Tip.
    """
    sent = yield from attempt(table, batch, known, calving)
    if isinstance(sent, Token):
        return Appended(first=sent.version - batch.count, version=sent.version, token=sent)
    settled = yield from _settle(table, batch, sent, version_of(known), repeatable=repeatable)
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


def _by_another(batch: WireBatch, blocked: BlockedByTip, found: int, tried: int) -> bool:
    """Whether another call with the key made an append: this call tried at one index only."""
    return batch.keyed and not (blocked.ambiguous and found == tried)


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
    return _left(tip, first, batch.count, batch.etag_at(first), replayed=replayed)


def _decided(tip: Tip, found: MarkedAppend) -> Appended:
    """Return the result of a decision that was made earlier, by the append that was found."""
    events = decided_events(found.append_id) or 0
    return _left(tip, found.first, events, keyed_etag(found.append_id, found.first), replayed=True)


def _left(tip: Tip, first: int, count: int, etag: str, *, replayed: bool) -> Appended:
    """Return the result of an append of `count` events, with the Tip's token if it is still the latest."""
    version = first + count
    token = tip.token() if tip.etag == etag else Token(version=version, etag=etag)
    return Appended(first=first, version=version, token=token, replayed=replayed)


# Finding an append by its id, to tell our own write from another's after a lost response (DESIGN §5.3).
#
# Contents are never compared: two writers may append equal events. Nor does an append count as absent because a search
# did not find it: only items that cover every index where it may be prove that. A gap between them means either that
# they were pruned, which reading the Tip again confirms, or that a transaction is still putting a calf, and then the
# search is repeated.

WHOSE = 8
"""Leading bytes of an append id that tell appends apart; the rest is a digest of what was appended."""

LOOKS: Final = 10
"""Most tries to read a calf that must be there: DynamoDB shows a transaction item by item, within milliseconds."""


class Earlier(Enum):
    """Result of a search that found no append: it is absent, or its place was pruned."""

    ABSENT = "absent"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedAppend:
    """An append that has been made, as its id marks it in the stream.

    Attributes:
        first: index of its first event.
        append_id: id of the append.
    """

    first: int
    append_id: bytes


def find(table: str, tip: Tip, wanted: bytes, at: int, *, or_later: bool) -> Steps[MarkedAppend | Earlier]:
    """Search a stream's Tip and calves for an append by its id; return it, or why it is not found.

    Args:
        wanted: id of the append.
        at: index of its first event.
        or_later: whether the append may begin at any later index up to the Tip's version. Events in the Tip are
            searched from `at` on in either case.

    Raises:
        InvalidInput: an append under the same idempotency key holds other events.
    """
    end = tip.version if or_later else at + 1
    marked = _in_span(tip.span.since(at), wanted)
    if marked is not None:
        return marked
    if at >= tip.span.base:
        return Earlier.ABSENT
    for _ in range(LOOKS):
        calved = yield from _in_calves(table, tip, wanted, at, min(end, tip.span.base))
        if calved is not Earlier.PRUNED or (yield from _is_pruned(table, tip.stream, at)):
            return calved
    return Earlier.PRUNED


def _is_pruned(table: str, stream: str, at: int) -> Steps[bool]:
    """Read the Tip again, and return whether the event at an index is pruned, or the stream gone."""
    tip = yield from load_tip(table, stream)
    return tip is None or tip.low_water > at


def _in_calves(table: str, tip: Tip, wanted: bytes, at: int, end: int) -> Steps[MarkedAppend | Earlier]:
    """Search the calves for an append, newest first; return it, absent, or pruned after a gap.

    A retry follows its first try closely, so new calves come first. Calves may overlap (see `reading`).
    """
    uncovered = end
    last: Key | None = None
    # The calf that holds one index is nearly always the last to begin at or before it.
    limit = 1 if end == at + 1 else None
    while True:
        reply: Items = yield query_calves(
            table, tip.stream, 0, end - 1, forward=False, limit=limit, after=last
        )
        for span in map(read_span, reply.items):
            marked = _in_span(span.since(at).before(end), wanted)
            if marked is not None:
                return marked
            if span.next >= uncovered:
                uncovered = min(uncovered, span.base)
            if uncovered <= at:
                return Earlier.ABSENT
        if reply.last is None:
            return Earlier.PRUNED
        last = reply.last


def _in_span(span: StoredSpan, wanted: bytes) -> MarkedAppend | None:
    """Search a span for an append by its id; return None if it is not there.

    Raises:
        InvalidInput: an append under the same idempotency key holds other contents.
    """
    for index, stored in _append_ids(span):
        if stored[:WHOSE] == wanted[:WHOSE]:
            both_decided = decided_events(stored) is not None is not decided_events(wanted)
            if stored != wanted and not both_decided:
                raise InvalidInput("idempotency_key", "was used before for other contents")
            return MarkedAppend(first=index, append_id=stored)
    return None


def _append_ids(span: StoredSpan) -> Iterator[tuple[int, bytes]]:
    """Yield index and append id of each event in a span that has one."""
    for offset, event in enumerate(span.events):
        stored = append_id(event)
        if stored is not None:
            yield span.base + offset, stored


# Appends under an idempotency key, of events, unfolds or both (see `layout.once`).


def append_once(
    table: str, batch: WireBatch, expected: ExpectedVersion, calving: Calving, record: KeyRecord
) -> Steps[Outcome]:
    """Append a batch once under its idempotency key; the batch's append id is derived from the key.

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

    def load(self) -> Steps[Tip | None]:
        """Read the Tip of the batch's stream; None if there is no such stream."""
        return load_tip(self.table, self.batch.stream)

    def append_on(self, known: TipOrToken, *, repeatable: bool) -> Steps[Outcome]:
        """Append the batch on exactly the Tip that is known; see `append.append_on`."""
        return append_on(self.table, self.batch, known, self.calving, repeatable=repeatable)

    def is_new(self, known: TipOrToken) -> None:
        """Return None: a key has no moment here (see `KeyedStreams.is_new`)."""

    def settle(self, head: Tip, since: int, *, repeatable: bool) -> Steps[Appended | Undetermined | None]:
        """Return how the append ended if another process made it; None if not (see `append.settle`)."""
        return settle(self.table, self.batch, head, since, repeatable=repeatable)

    def unfold_on(
        self, known: TipOrToken, record: KeyRecord, seen: RecordContents | None
    ) -> Steps[Token | UnfoldsRefused[Tip]]:
        """Write unfolds into a known Tip together with the key's record, in one transaction.

        If the Tip has no room, its events are put into a calf first. Returns the Tip's token, or the Tip and record
        that refused the write.
        """
        table, batch = self.table, self.batch
        while True:
            write, token = create_tip(table, batch) if known is None else extend_tip(table, batch, known)
            note = done_record(table, record, batch, version_of(known), seen)
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
            known = yield from self._emptied(known, token.size)

    def is_pruned(self, head: Tip, since: int) -> Steps[bool]:
        """Whether events that may hold the append, from index `since` on, are pruned; see `find`."""
        marked = yield from find(self.table, head, self.batch.append_id, since, or_later=True)
        return marked is Earlier.PRUNED

    def _emptied(self, known: TipOrToken, size: int) -> Steps[TipOrToken]:
        """Put a Tip's events into a calf to make room for unfolds, and return the Tip or token after that.

        Raises:
            TooLarge: the Tip has no events, so the unfolds alone do not fit.
        """
        tip = known if isinstance(known, Tip) else (yield from self.load())
        if tip is None or not tip.span.events:
            raise TooLarge("unfolds", size, ITEM_BYTES)
        if isinstance(known, Token) and known.etag != tip.etag:
            return known  # the next try is refused, and says what the Tip is
        bare = replace(self.batch, unfolds=None, etag=retry_etag(self.batch.etag, tip))
        outcome = yield from calve_and_write(self.table, bare, tip, self.calving)
        return outcome if isinstance(outcome, Token) else known


def _read(item: Item | None) -> Steps[Tip | None]:
    """Return the Tip that came back with a refusal, without a request."""
    yield from ()
    return None if item is None else read_tip(item)
