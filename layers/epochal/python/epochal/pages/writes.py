"""A batch of one append, and the writes that append it.

A batch is packed once for all its tries: neither its content nor who it is depends on where it will be.

Several batches of one stream may be joined, to go out as one write with a frame for each. It is known by the last of
them, since all or none are there. Their stamps are one tick apart, by which the feed knows what one write has appended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from epochal.codec.bodies import EMPTY, Encoded, denser, may_gain
from epochal.errors import InvalidInput, TooLarge
from epochal.layout.streams import IDENTIFIED, NEVER, Batch, EncodedEvent, Known, Written
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import PER_SECOND, Ticks
from epochal.model.versions import MAX_VERSION, Expected, Token, version_of
from epochal.pages.frames import Frame, Unfolds, pack_events, pack_unfolds, refer_to, stamp_of, time_of
from epochal.pages.items import (
    REMOVING,
    Page,
    PageState,
    frames_size,
    origin,
    page_key,
    read_page,
    state_of,
    unfolds_size,
    write_frames,
    write_page,
)
from epochal.pages.reading import load_head, load_page, whole
from epochal.plan.conditions import Absent, All, Condition, equals
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Extend, Overflow, Put, Refusal, Set, Steps, Update
from epochal.plan.values import Key, attribute_size, binary, number, sequence, value_size, write_units

WHOSE: Final = 5
"""Bytes after a stamp's time that tell appends apart under a key; the other three are a digest of what was appended."""


MARK_BYTES: Final = 8
"""Bytes of an etag that tell writes without events apart."""

ANYWHERE: Final = (Expected.ANY, Expected.STREAM_EXISTS)
"""Expectations of no place: on whatever comes back the append goes on."""

AHEAD: Final = PER_SECOND
"""By how much a stamp's time may be beyond the writer's clock and still be the time of events. Were there no bound, one
clock that was years ahead would date all later events of the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """One append: all or nothing.

    Attributes:
        before: appends that go out with this one, ahead of it.
        count: how many events, with theirs.
        events: its own, and
        content: theirs, where their time is that of the stamp.
        unfolds: how many there are to replace those stored, and their content; None keeps those.
        rest: what follows the time in the append's stamp,
        mark: and in the stamp of a write without events.
        append_id: as the caller gave it,
        etag: as the caller gave it; of unfolds alone, that they leave (see `layout.once`).
        keyed: `rest` stems from a caller's idempotency key, so another process may have written it.
        dated: the time of one of them is its own, and that of the writer's clock: it is kept exactly.
        ids: of its events, as labels, where all have one and no key tells who it is.
        above: no stamp of it is at this time or before: of the streams that it is for besides this one, or of its key.
    """

    stream: str
    count: int
    events: tuple[EncodedEvent, ...]
    content: Encoded
    unfolds: tuple[int, Encoded] | None
    now: Ticks
    rest: bytes
    mark: bytes
    append_id: bytes
    etag: str
    keyed: bool
    dated: bool = False
    ids: tuple[bytes, ...] = ()
    above: Ticks = NEVER
    before: tuple[Packed, ...] = ()

    def stamp(self, last: Ticks | None) -> bytes:
        """The stamp of this append, above the last one of the stream whatever the clock says."""
        time = _after(self.now, max(self.above, last or self.above))
        return stamp_of(Ticks(time + len(self.before)), self.rest if self.count else self.mark)

    def mark_after(self, last: Ticks) -> bytes:
        """The stamp of a further write that this append needs, above the last one of its stream."""
        return stamp_of(_after(self.now, last), self.mark)

    def frames(self, stamp: bytes) -> tuple[Frame, ...]:
        """The events as a frame, if there are any, after the frames of those before."""
        if not self.count:
            return ()
        first = time_of(stamp) - len(self.before)
        return tuple(
            each._frame(Ticks(first + position))  # noqa: SLF001  its own kind
            for position, each in enumerate((*self.before, self))
        )

    def unfolds_at(self, version: int) -> bytes:
        """The unfolds, made from `version`; empty where there are none."""
        if self.unfolds is None or not self.unfolds[0]:
            return b""
        count, content = self.unfolds
        return Unfolds(version=version, moment=self.now, count=count, content=content).binary()

    @property
    def may_gain(self) -> int:
        """Bytes that `denser` may save."""
        unfolds = 0 if self.unfolds is None else may_gain(self.unfolds[1])
        return may_gain(self.content) + unfolds + sum(each.may_gain for each in self.before)

    def denser(self) -> Packed:
        """The same, in as few bytes as CPU can buy."""
        return replace(
            self,
            content=denser(self.content),
            unfolds=None if self.unfolds is None else (self.unfolds[0], denser(self.unfolds[1])),
            before=tuple(each.denser() for each in self.before),
        )

    def _frame(self, time: Ticks) -> Frame:
        stamp = stamp_of(time, self.rest)
        return Frame(stamp, len(self.events), *self._dated(time))

    def _dated(self, time: Ticks) -> Encoded:
        if time == self.now or (not self.dated and time - self.now <= AHEAD):
            return self.content
        return pack_events(self.events, time)


def packed(batch: Batch) -> Packed:
    """A batch, packed.

    Raises:
        TooLarge: it has more events than one append may have.
    """
    now = _above(batch)
    unfolds = None if batch.unfolds is None else (len(batch.unfolds), pack_unfolds(batch.unfolds, now))
    identity = batch.append_id
    labels = () if batch.keyed else tuple([event.label for event in batch.events])
    return Packed(
        stream=batch.stream,
        count=len(batch.events),
        events=batch.events,
        content=pack_events(batch.events, now) if batch.events else EMPTY,
        unfolds=unfolds,
        now=now,
        rest=rest_of(identity),
        mark=bytes.fromhex(batch.etag)[:MARK_BYTES],
        append_id=identity,
        etag=batch.etag,
        keyed=batch.keyed,
        dated=batch.dated,
        ids=labels if all(label.startswith(IDENTIFIED) for label in labels) else (),
        above=batch.above,
    )


def _above(batch: Batch) -> Ticks:
    """The writer's clock, or a moment above that of the key: another for each call, which so knows its own write."""
    return Ticks(max(batch.now, batch.above + 1 + int(batch.etag[:4], 16))) if batch.above else batch.now


def rest_of(append_id: bytes) -> bytes:
    """What an append's stamp has of its id."""
    return append_id[:WHOSE] + append_id[8 : 16 - WHOSE]


def joined(batches: Sequence[Packed]) -> Packed:
    """Batches of one stream, all of events alone and under no key, as one append."""
    *before, last = batches
    now = max(each.now for each in batches)
    if now != last.now and (last.dated or now - last.now > AHEAD):
        last = replace(last, content=pack_events(last.events, now))
    count = sum(len(each.events) for each in batches)
    return replace(last, before=tuple(before), count=count, now=now, ids=())


def _after(now: Ticks, last: Ticks | None) -> Ticks:
    return now if last is None else Ticks(max(now, last + 1))


# The writes of an append, as plans, and the token that each leaves behind. Pure arithmetic on FORMATS §8.
#
# When a page is full: what its next append would cost here, against what an append costs over a page's life.
#
# Every append is charged by the whole page, so each byte that a page carries taxes the appends after it. A page that is
# left costs too: its item and the unfolds in it stay, and count for nothing. The writer reckons with appends of the
# page's average size, each with unfolds as large as now. `rate` is the least average cost of an append over a page's
# life: a page begun, so many appends on it, and what is left behind. An append costs more the more the page carries, so
# where the next one here would cost more than the rate, all after it would, and the page is full.
#
# Large unfolds that stay are the exception: the next page names this one instead, and is as small as any.
#
# A first append is taken for what the others will be. A pure function of a `Token`, so that a writer that holds only a
# token can decide without reading. Any answer is safe; measured against the offline optimum by `bench/fullness.py`.
#
# One attempt to append on what is known of the last page: the write that goes out, and what blocked it.

_EMPTY_LIST: Final = attribute_size("f", sequence(()))


_P = TypeVar("_P", bound="Planned | None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A write of a stream's last page, and what it leaves.

    Attributes:
        stamp: that it is known by.
        after: what it goes on from: the page or token known, or what has closed that page.
        count: events that it adds.
    """

    write: Put | Update
    stamp: bytes
    token: Token
    after: Known[Page]
    count: int

    @property
    def first(self) -> int:
        """Index of the first event that it adds."""
        return self.token.version - self.count

    @property
    def written(self) -> Written:
        """What is told of it, once it was made."""
        return Written(first=self.first, version=self.token.version, token=self.token)

    @property
    def key(self) -> Key:
        """Of the page that is written."""
        write = self.write
        return {name: (write.item if isinstance(write, Put) else write.key)[name] for name in ("p", "i")}


def token_of(known: Page | Token) -> Token:
    """The figures that fullness goes by."""
    return known.token() if isinstance(known, Page) else known


def is_own(table: str, stream: str, known: Page | Token) -> bool:
    """Whether it was made of the stream's pages, by this process. What any other says may be false."""
    return isinstance(known, Page) or known.of == origin(table, stream)


def place_of(known: Page | Token) -> PageState | None:
    """The page that is known, and its state; None where what is known is no page's."""
    if isinstance(known, Page):
        return known.state
    return None if known.etag is None else state_of(known.etag)


def index_of(known: Page | Token) -> int:
    """The index of its first event."""
    state = place_of(known)
    return 0 if state is None else state.index


def can_be_left(known: Known[Page]) -> bool:
    """Whether another page may follow: one without events is never left, or the next would begin at the same place."""
    return known is not None and index_of(known) < known.version


def unchanged(state: PageState, version: int) -> All:
    """That a page is as it is known, and open. Index and time of what follows are taken from it, and a token may be
    forged, so it is asked for both.
    """
    return All((equals("r", number(state.time)), equals("n", number(version)), Absent("x")))


def _told(table: str, stream: str, known: Page | Token, state: PageState) -> All:
    """`unchanged`, and where the token comes from outside also that it tells the low-water mark: the token that the
    write leaves has it, and so has the page that is begun on that.
    """
    same = unchanged(state, known.version)
    if is_own(table, stream, known):
        return same
    mark = equals("l", number(known.low_water)) if known.low_water else Absent("l")
    return All((*same.conditions, mark))


def as_read(page: Page) -> Condition:
    """That a page is as it was read."""
    return All((equals("r", number(page.time)), equals("n", number(page.version))))


def marking(etag: str, page: Page) -> bytes:
    """The stamp of a write that takes from a page, above the last: no clock is needed for it."""
    return stamp_of(Ticks(page.time + 1), removing(etag))


def removing(etag: str) -> bytes:
    """What follows the time in the stamp of a write that takes events away."""
    return bytes.fromhex(etag)[: MARK_BYTES - len(REMOVING)] + REMOVING


def kept_by_next(page: Page) -> bytes:
    """What the page after a full one has of unfolds that stay: themselves or, of large ones, which page has them."""
    large = page.unfolds_at is None and len(page.unfolds) >= REFER_FROM
    return refer_to(page.index) if large else page.unfolds


def begin(table: str, batch: Packed, known: Page | Token | None, unfolds: bytes) -> Planned:
    """The page that follows the one known (None: the first), if there is none.

    It says as well what is pruned: a deletion that was interrupted hides pages before it has emptied them.

    Args:
        unfolds: those stored, which stay where the batch does not replace them.
    """
    return _cheaper(batch, lambda each: _begin(table, each, known, unfolds))


def _begin(table: str, batch: Packed, known: Page | Token | None, unfolds: bytes) -> Planned:
    state = None if known is None else place_of(known)
    index = 0 if known is None else known.version
    version = index + batch.count
    stamp = batch.stamp(None if state is None else state.time)
    page = Page(
        table=table,
        stream=batch.stream,
        index=index,
        version=version,
        frames=batch.frames(stamp),
        unfolds=unfolds if batch.unfolds is None else batch.unfolds_at(version),
        low_water=0 if known is None else known.low_water,
        stamp=None if batch.count else stamp,
    )
    before = None if known is None else token_of(known)
    page = replace(page, full=_is_full(index, page.token(), before, _joined(page.frames)))
    put = Put(table=table, item=write_page(page), condition=Absent("i"))
    return Planned(write=put, stamp=stamp, token=page.token(), after=known, count=batch.count)


def extend(table: str, batch: Packed, known: Page | Token) -> Planned | None:
    """A batch added to the page known; None where that is full, or does not take it.

    A page without events takes anything: were it left, the next one would be begun at the same place.
    """
    return _cheaper(batch, lambda each: _extend(table, each, known))


def _cheaper(batch: Packed, plan: Callable[[Packed], _P]) -> _P:
    """The write of a batch; of the same in fewer bytes, where that costs a unit less."""
    planned = plan(batch)
    if planned is None:
        return planned
    size, gain = planned.token.size, batch.may_gain
    if write_units(size - gain) == write_units(size):
        return planned
    denser = plan(batch.denser())
    return denser if denser is not None and write_units(denser.token.size) < write_units(size) else planned


def _extend(table: str, batch: Packed, known: Page | Token) -> Planned | None:
    state, before = place_of(known), token_of(known)
    if state is None or state.full:
        return None
    stamp = batch.stamp(state.time)
    frames, unfolds = batch.frames(stamp), batch.unfolds_at(before.version + batch.count)
    times = state.time, time_of(stamp)
    token = _grown(before, frames, None if batch.unfolds is None else unfolds, times)
    if state.index < before.version and not fits(before, token.size - before.size):
        return None
    full = _is_full(state.index, token, before, _joined(frames), kept=batch.unfolds is None)
    left = PageState(index=state.index, full=full, time=times[1])
    added = Extend("f", write_frames(frames)) if frames else Set("w", binary(stamp))
    update = Update(
        table=table,
        key=page_key(batch.stream, state.index),
        sets=(
            *_counters(left, token.version),
            added,
            *((Set("u", binary(unfolds)),) if unfolds else ()),
        ),
        removes=(*(("w",) if frames else ()), *(("u",) if batch.unfolds is not None and not unfolds else ())),
        condition=_told(table, batch.stream, known, state),
    )
    token = replace(token, etag=left.etag(), of=origin(table, batch.stream))
    return Planned(write=update, stamp=stamp, token=token, after=known, count=batch.count)


def close(table: str, batch: Packed, known: Page | Token, state: PageState) -> Planned:
    """The page that is known, so that no append extends it."""
    stamp = batch.mark_after(state.time)
    left = replace(state, full=True, time=time_of(stamp))
    update = Update(
        table=table,
        key=page_key(batch.stream, state.index),
        sets=(*_counters(left, known.version), Set("w", binary(stamp))),
        condition=unchanged(state, known.version),
    )
    token = replace(token_of(known), etag=left.etag(), of=origin(table, batch.stream))
    return Planned(write=update, stamp=stamp, token=token, after=known, count=0)


def left_by(page: Page, version: int, stamp: bytes) -> Token:
    """The token of the page that an append has left, also if others have written it since. Whether the page was full
    then, nobody knows any more; an append on the token is in conflict in either case.
    """
    state = PageState(index=page.index, full=False, time=time_of(stamp))
    return Token(version=version, etag=state.etag())


def _counters(left: PageState, version: int) -> tuple[Set, ...]:
    full = (Set("x", number(1)),) if left.full else ()
    return (Set("n", number(version)), Set("r", number(left.time)), *full)


def _counters_size(time: Ticks, version: int) -> int:
    """Bytes of what every write sets anew. The zeroes that a number ends with take none, so it may shrink."""
    return value_size(number(time)) + value_size(number(version))


def _is_full(index: int, token: Token, before: Token | None, joined: int, *, kept: bool = False) -> bool:
    """A page without events never is: the next one would be begun at the same place."""
    return index < token.version and is_full(token, before, joined, kept=kept)


def _joined(frames: tuple[Frame, ...]) -> int:
    """Bytes of a write of several frames."""
    return frames_size(frames) if len(frames) > 1 else 0


def _grown(
    before: Token, frames: tuple[Frame, ...], unfolds: bytes | None, times: tuple[Ticks, Ticks]
) -> Token:
    """The figures of a page with more frames, and other unfolds (None: those that it has), its latest stamp's time
    having been and being `times`.
    """
    growth = frames_size(frames) - (_EMPTY_LIST if frames and before.appends else 0)
    taken = before.unfolds if unfolds is None else unfolds_size(unfolds)
    count = sum(frame.count for frame in frames)
    counted = _counters_size(times[1], before.version + count) - _counters_size(times[0], before.version)
    return replace(
        before,
        version=before.version + count,
        size=before.size + growth + taken - before.unfolds + counted,
        carried=before.carried + growth,
        unfolds=taken,
        events=before.events + count,
        appends=before.appends + len(frames),
    )


ROOM: Final = 8 * 1024
"""Kept free below the item limit for counters, and for what sizes in a token may be off by."""

KEPT_MONTHS: Final = 3
"""How long what is left behind is reckoned to be stored. For ever would be dearer than any write; but pages can be
pruned, and what is spent later weighs less."""

_UNITS_PER_BYTE: Final = KEPT_MONTHS * 0.38 / 1024
"""A KB costs as much in a month as 0.38 write units, on demand and by any region's prices: $0.25 per GB against $0.625
per million."""

_ITEM: Final = 100
"""Bytes that an item is charged for besides its own, where storage is paid for."""

_MARK: Final = attribute_size("x", number(1))

_CAUTION: Final = 0.5
"""How much of the difference between appends the next one is taken to be larger by. Where sizes stray the rule is
careful, because one more unit costs more than one more page; more care than this costs more than it saves."""

REFER_FROM: Final = 768
"""Unfolds of so many bytes stay on a full page, which later ones name. On each page they would cost every append a unit
more for each KB; where they are elsewhere, a load reads one page more, which is a fifth of a unit for 4 KB."""

_NAMED: Final = 16
"""Bytes of unfolds that a page has less of where it only names another."""

_LEAST: Final = 20
"""No frame takes less. A token comes from outside and may say anything; this bounds how long one is reckoned with."""


def is_full(left: Token, before: Token | None = None, joined: int = 0, *, kept: bool = False) -> bool:
    """Whether a page, as a write leaves it, is to be left by the next.

    Args:
        before: of the page that the write found last, this one or the one before it.
        joined: bytes of the write, if it was several appends that met: those who meet next are taken to be as many.
        kept: the write has left the unfolds as they were, which the next is taken to do, too.
    """
    if left.size >= ITEM_BYTES - ROOM:
        return True
    usual = max(_LEAST, joined or left.carried / max(1, left.appends))
    # To say that it is full takes bytes of its own, which now and then are the ones that cost another unit.
    mark = write_units(left.size + _MARK) - write_units(left.size)
    caution = 0 if joined else _CAUTION * _spread(left, before)
    further = write_units(int(left.size + usual + caution) + _MARK)
    # Where only a name was of the unfolds before, these will stay as those have.
    stay = kept or (before is not None and 0 < before.unfolds < _NAMED)
    return further - _rate(left, usual, kept=stay) > mark


def fits(page: Token, growth: int) -> bool:
    """Whether a page takes so many bytes more. Where it does, closing it first would be no cheaper."""
    return page.size + growth <= ITEM_BYTES - ROOM


def _spread(left: Token, before: Token | None) -> float:
    """By how much the latest append differs in size from those before it."""
    if before is None or not before.appends or left.version == before.version:
        return 0
    extended = left.appends > before.appends
    latest = left.carried - before.carried if extended else left.carried
    return abs(latest - before.carried / before.appends)


def _rate(left: Token, usual: float, *, kept: bool) -> float:
    """The least average units of an append over a page's life, for appends of `usual` bytes each."""
    bare = max(0, left.size - left.carried)
    if kept and left.unfolds >= REFER_FROM:  # the next page would only name this one
        bare = max(0, bare - left.unfolds)
    spent = (bare + _ITEM) * _UNITS_PER_BYTE
    best, carried, appends = float("inf"), 0.0, 0
    while carried < ITEM_BYTES:
        carried += usual
        appends += 1
        units = write_units(int(bare + carried))
        if units > best:  # and so will be all that follow
            break
        spent += units
        best = min(best, spent / appends)
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A write that was refused, or was not sent because it would be.

    Attributes:
        page: the page that stood in its way; None if none was there.
        planned: the write, if it was sent.
        lost: whether an answer to it was lost, so that it may have been applied, and may stand in its own way.
    """

    page: Page | None
    planned: Planned | None = None
    lost: bool = False


def write(table: str, batch: Packed, known: Known[Page]) -> Steps[Planned | Blocked]:
    """Append on exactly what is known: what was written, or what blocked it."""
    planned = yield from next_write(table, batch, known)
    if isinstance(planned, Blocked):
        return planned
    reply = yield planned.write
    if isinstance(reply, Overflow) and can_be_left(known):
        extension, planned = planned, (yield from next_write(table, batch, known, extending=False))
        if isinstance(planned, Blocked):
            return replace(planned, planned=extension)
        reply = yield planned.write
    return sent(planned, reply)


def next_write(
    table: str, batch: Packed, known: Known[Page], *, extending: bool = True
) -> Steps[Planned | Blocked]:
    """The write that appends on what is known, once all that it needs is read, and the page before it is closed.

    Args:
        extending: the page may be extended; False where that has turned out to be too much for it.
    """
    if version_of(known) + batch.count > MAX_VERSION:
        raise InvalidInput("events", f"a stream holds at most {MAX_VERSION:,} events")
    if known is None:
        return begin(table, batch, None, b"")
    if isinstance(known, Page) and known.deleted:
        return Blocked(page=known)
    planned = extend(table, batch, known) if extending else None
    if planned is not None:
        return planned
    if is_own(table, batch.stream, known):
        return (yield from _begin_after(table, batch, known))
    head = yield from load_head(table, batch.stream)
    if head is None or (head.version, head.etag) != (known.version, known.etag):
        return Blocked(page=head)
    return (yield from next_write(table, batch, head, extending=extending))


def sent(planned: Planned, reply: Done | Refusal | Overflow) -> Planned | Blocked:
    """What came of a write."""
    if isinstance(reply, Done):
        return planned
    if isinstance(reply, Overflow):
        raise TooLarge("events", planned.token.size, ITEM_BYTES)
    page = None if reply.item is None else read_page(reply.item, planned.write.table)
    return Blocked(page=page, planned=planned, lost=reply.ambiguous)


def head_from(table: str, stream: str, page: Page | None) -> Steps[Page | None]:
    """The last page, from the one that stood in the way; that one is kept, where it is the page before."""
    if page is not None and (page.deleted or not page.full):
        return (yield from whole(page))
    head = yield from load_head(table, stream)
    if head is None or page is None or page.version != head.index:
        return head
    return replace(head, before=(page,))


def _begin_after(table: str, batch: Packed, known: Page | Token) -> Steps[Planned | Blocked]:
    """Leave a page that is full, or that does not take the batch."""
    closed = yield from _closed(table, batch, known)
    if isinstance(closed, Blocked):
        return closed
    if batch.unfolds is not None or not token_of(closed).unfolds:
        return begin(table, batch, closed, b"")
    page = closed if isinstance(closed, Page) else (yield from _page_of(table, batch.stream, closed))
    if page is None or page.version != known.version:
        return Blocked(page=page)
    return replace(begin(table, batch, closed, kept_by_next(page)), after=page)


def _page_of(table: str, stream: str, known: Token) -> Steps[Page | None]:
    return (yield from load_page(table, stream, index_of(known)))


def _closed(table: str, batch: Packed, known: Page | Token) -> Steps[Page | Token | Blocked]:
    """What is known once no append extends the page."""
    state = place_of(known)
    if state is None or state.full:
        return known
    planned = close(table, batch, known, state)
    came = sent(planned, (yield planned.write))
    if isinstance(came, Planned):
        return came.token
    if came.page is not None and came.page.stamp == planned.stamp:
        return came.page
    return Blocked(page=came.page)
