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
from typing import Final, Literal, TypeAlias

from epochal.contrib.equinox import CALVING, TIP_BYTES, EquinoxOptions
from epochal.errors import InvalidInput, TooLarge
from epochal.index.tip import StoredSpan, Tip, append_id, load_tip, query_calves, read_span, read_tip
from epochal.index.tip_append import (
    BlockedByTip,
    Growth,
    TipOrToken,
    WireBatch,
    attempt,
    calf_pays,
    calve_and_update,
    calve_and_write,
    create_tip,
    extend_tip,
    keyed_etag,
    overflows,
    put_calf,
    retry_etag,
    uncalved,
)
from epochal.layout import once, streams
from epochal.layout.once import KeyRecord, Remembered, UnfoldsRefused, done_record, read_record
from epochal.layout.streams import Answer, Rejected, Settled, Unknown, Written, accepts, decided_events
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.versions import (
    UNREAD,
    AtVersion,
    Expected,
    ExpectedVersion,
    Token,
    Unread,
    expected_head,
    version_of,
)
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Items, Overflow, Refusal, Steps, Transact, Update
from epochal.plan.values import Item, Key
from epochal.settings import Settings, variable

# When a Tip's events go into a calf, and how: when that is cheapest (`index.tip_append.calf_pays`), or at limits.
#
# `Fixed` calves by bytes and events, as Equinox does; for tables that Equinox applications write too. For these, calf
# and Tip are written in one transaction: there is no overlap then, at twice the price.

Mode = Literal["two-step", "transactional"]
"""Whether a calf and its Tip are written one after the other, or in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _InMode:
    mode: Mode

    def calve(self, table: str, tip: Tip, update: Update) -> Steps[Done | Refusal | Overflow | None]:
        """Put what the Tip carries into calves, and update it. None: the Tip is stale."""
        steps = calve_at_once if self.mode == "transactional" else calve_and_update
        return steps(table, tip, update)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByCost(_InMode):
    """Calve when that is cheaper than to go on."""

    mode: Mode = "two-step"

    def calves(self, tip: Token, new: Growth) -> bool:
        """Whether to calve what the Tip carries before writing `new`."""
        return calf_pays(tip, new, factor=2 if self.mode == "transactional" else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(_InMode):
    """Calve when the Tip would exceed `max_bytes` of events or `max_events`."""

    max_bytes: int = TIP_BYTES
    max_events: int | None = None
    mode: Mode = "transactional"

    def calves(self, tip: Token, new: Growth) -> bool:
        """Whether to calve what the Tip carries before writing `new`."""
        if tip.events == 0:
            return False
        if overflows(tip, new) or tip.carried + new.growth > self.max_bytes:
            return True
        return self.max_events is not None and tip.events + new.events > self.max_events


Calving = ByCost | Fixed
"""When events leave a Tip."""


def calving_of(settings: Settings) -> Calving:
    """What a deployment does. Where Equinox applications use the table too, calf and Tip are one transaction, and the
    rule is theirs unless another is chosen.

    Raises:
        InvalidInput: there is no such rule.
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
    """The calf and the Tip's update in one transaction. None: the Tip is stale."""
    rest, doubtful = tip.span, False
    while True:
        writes = (put_calf(table, tip.stream, rest), update) if rest.events else (update,)
        reply: Done | Refusal | Overflow = yield Transact(writes=writes)
        if not isinstance(reply, Refusal):
            return reply
        # What is calved already may be so by a transaction of ours whose response was lost.
        doubtful = doubtful or reply.ambiguous
        if reply.failed[-1]:
            return Refusal(items=reply.items[-1:], ambiguous=doubtful)
        left = uncalved(reply, rest)
        if left is None:
            return None
        rest = left


Result: TypeAlias = streams.Result[Tip]


def append(
    table: str,
    batch: WireBatch,
    expected: ExpectedVersion,
    calving: Calving,
    start: TipOrToken | Unread = UNREAD,
) -> Steps[Result]:
    """Append `batch`, beginning from `start` or, where that is unread, from what `expected` tells.

    Raises:
        TooLarge: the events do not fit an item even with a Tip of their own.
        InvalidInput: the idempotency key was used for other events; the stream is full.
    """
    known: TipOrToken | Unread = expected_head(expected) if start is UNREAD else start
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
            batch = replace(batch, etag=retry_etag(batch.etag, known))


def append_on(
    table: str, batch: WireBatch, known: TipOrToken, calving: Calving, *, repeatable: bool = False
) -> Steps[Result]:
    """Append on exactly the Tip that is known (None: no stream yet). Any other is a rejection, which brings it back.

    Args:
        repeatable: unfolds alone may be written again where nobody can tell whether they were; events under a key may
            stand later than on what is known, by another process.
    """
    sent = yield from attempt(table, batch, known, calving)
    if isinstance(sent, Token):
        return Written(first=sent.version - batch.count, version=sent.version, token=sent)
    settled = yield from _settle(table, batch, sent, version_of(known), repeatable=repeatable)
    return Rejected(head=sent.tip) if settled is None else settled


def settle(table: str, batch: WireBatch, tip: Tip, since: int, *, repeatable: bool) -> Steps[Settled | None]:
    """What an existing Tip says about an append that another process may have made from index `since` on."""
    return (yield from _settle(table, batch, BlockedByTip(tip=tip), since, repeatable=repeatable))


def decided(key: once.DecisionKey, head: Tip, since: int) -> Steps[Settled | None]:
    """What came of a decision that is known by a key, from index `since` on; None where there is none."""
    found = yield from find(key.table, head, key.append_id, since, or_later=True)
    if isinstance(found, MarkedAppend):
        return _decided(head, found)
    return Unknown(first=since) if found is Earlier.PRUNED else None


def _settle(
    table: str, batch: WireBatch, blocked: BlockedByTip, since: int, *, repeatable: bool
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


def _by_another(batch: WireBatch, blocked: BlockedByTip, found: int, tried: int) -> bool:
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


# Finding an append by its id, to tell our own write from another's after a lost response (DESIGN §5.3).
#
# Contents are never compared: two writers may append equal events. Nor is an append taken for absent because it was not
# found: only items that cover every index where it may stand show that. A gap between them means that they were pruned,
# which the Tip read again confirms, or that a transaction is still putting a calf, which is then looked for again.

WHOSE = 8
"""Leading bytes of an append id that tell appends apart; the rest is a digest of what was appended."""

LOOKS: Final = 10
"""For a calf that the Tip says is there: DynamoDB shows a transaction item by item, within milliseconds."""


class Earlier(Enum):
    """What a search that found nothing means."""

    ABSENT = "absent"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedAppend:
    """An append that has been made: the index of its first event, and its id."""

    first: int
    append_id: bytes


def find(table: str, tip: Tip, wanted: bytes, at: int, *, or_later: bool) -> Steps[MarkedAppend | Earlier]:
    """The append whose first event has index `at`, or with `or_later` any from there up to the Tip's version. What the
    Tip carries is looked through in either case.

    Raises:
        InvalidInput: an append under the same idempotency key holds other events.
    """
    end = tip.version if or_later else at + 1
    found = _in_span(tip.span.since(at), wanted)
    if found is not None:
        return found
    if at >= tip.span.base:
        return Earlier.ABSENT
    for _ in range(LOOKS):
        there = yield from _in_calves(table, tip, wanted, at, min(end, tip.span.base))
        if there is not Earlier.PRUNED or (yield from _is_pruned(table, tip.stream, at)):
            return there
    return Earlier.PRUNED


def _is_pruned(table: str, stream: str, at: int) -> Steps[bool]:
    tip = yield from load_tip(table, stream)
    return tip is None or tip.low_water > at


def _in_calves(table: str, tip: Tip, wanted: bytes, at: int, end: int) -> Steps[MarkedAppend | Earlier]:
    """Newest calves first: a retry follows its first try closely. They may overlap (see `reading`)."""
    uncovered = end
    last: Key | None = None
    # The calf that holds one index is nearly always the last to begin at or before it.
    limit = 1 if end == at + 1 else None
    while True:
        reply: Items = yield query_calves(
            table, tip.stream, 0, end - 1, forward=False, limit=limit, after=last
        )
        for span in map(read_span, reply.items):
            found = _in_span(span.since(at).before(end), wanted)
            if found is not None:
                return found
            if span.next >= uncovered:
                uncovered = min(uncovered, span.base)
            if uncovered <= at:
                return Earlier.ABSENT
        if reply.last is None:
            return Earlier.PRUNED
        last = reply.last


def _in_span(span: StoredSpan, wanted: bytes) -> MarkedAppend | None:
    for index, stored in _append_ids(span):
        if stored[:WHOSE] == wanted[:WHOSE]:
            both_decided = decided_events(stored) is not None is not decided_events(wanted)
            if stored != wanted and not both_decided:
                raise InvalidInput("idempotency_key", "was used before for other contents")
            return MarkedAppend(first=index, append_id=stored)
    return None


def _append_ids(span: StoredSpan) -> Iterator[tuple[int, bytes]]:
    for offset, event in enumerate(span.events):
        stored = append_id(event)
        if stored is not None:
            yield span.base + offset, stored


# Appends under an idempotency key, of whatever they consist (see `layout.once`).


def append_once(
    table: str, batch: WireBatch, expected: ExpectedVersion, calving: Calving, record: KeyRecord
) -> Steps[Answer[Tip]]:
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

    def append_on(self, known: TipOrToken, *, repeatable: bool) -> Steps[Result]:
        """See `append.append_on`."""
        return append_on(self.table, self.batch, known, self.calving, repeatable=repeatable)

    def is_new(self, known: TipOrToken) -> None:
        """See `KeyedStreams.is_new`."""

    def settle(self, head: Tip, since: int, *, repeatable: bool) -> Steps[Settled | None]:
        """See `append.settle`."""
        return settle(self.table, self.batch, head, since, repeatable=repeatable)

    def unfold_on(
        self, known: TipOrToken, record: KeyRecord, seen: Remembered | None
    ) -> Steps[Token | UnfoldsRefused[Tip]]:
        """The Tip and the record in one transaction, once there is room."""
        table, batch = self.table, self.batch
        while True:
            write, token = create_tip(table, batch) if known is None else extend_tip(table, batch, known)
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

    def _emptied(self, known: TipOrToken, size: int) -> Steps[TipOrToken]:
        """What is known once the Tip's events are in a calf, which makes room for the unfolds."""
        tip = known if isinstance(known, Tip) else (yield from self.load())
        if tip is None or not tip.span.events:
            raise TooLarge("unfolds", size, ITEM_BYTES)
        if isinstance(known, Token) and known.etag != tip.etag:
            return known  # the next try is refused, and says what the Tip is
        bare = replace(self.batch, unfolds=None, etag=retry_etag(self.batch.etag, tip))
        left = yield from calve_and_write(self.table, bare, tip, self.calving)
        return left if isinstance(left, Token) else known


def _read(item: Item | None) -> Steps[Tip | None]:
    """The Tip that came back with a refusal."""
    yield from ()
    return None if item is None else read_tip(item)
