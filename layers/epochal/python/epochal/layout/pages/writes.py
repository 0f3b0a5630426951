"""The writes of an append, as plans, and the token that each leaves behind. Pure arithmetic on FORMATS §8."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from epochal.layout.pages.batch import MARK_BYTES, Packed
from epochal.layout.pages.etags import PageState, state_of
from epochal.layout.pages.frames import Frame, refer_to, stamp_of, time_of
from epochal.layout.pages.fullness import REFER_FROM, fits, is_full
from epochal.layout.pages.items import (
    Page,
    frames_size,
    origin,
    page_key,
    unfolds_size,
    write_frames,
    write_page,
)
from epochal.layout.streams import Known
from epochal.model.times import Ticks
from epochal.model.versions import Token
from epochal.plan.conditions import Absent, All, Condition, equals
from epochal.plan.ops import Extend, Put, Set, Update
from epochal.plan.sizes import attribute_size, value_size
from epochal.plan.values import Key, binary, number, sequence

_EMPTY_LIST: Final = attribute_size("f", sequence(()))


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
    """The stamp of a write that adds no frame to a page, above the last: no clock is needed for it."""
    return stamp_of(Ticks(page.time + 1), bytes.fromhex(etag)[:MARK_BYTES])


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
    state, before = place_of(known), token_of(known)
    if state is None or state.full:
        return None
    stamp = batch.stamp(state.time)
    frames, unfolds = batch.frames(stamp), batch.unfolds_at(before.version + batch.count)
    token = _grown(before, frames, None if batch.unfolds is None else unfolds)
    counted = _counters_size(time_of(stamp), token.version) - _counters_size(state.time, before.version)
    token = replace(token, size=token.size + counted)
    if state.index < before.version and not fits(before, token.size - before.size):
        return None
    full = _is_full(state.index, token, before, _joined(frames), kept=batch.unfolds is None)
    left = replace(state, full=full, time=time_of(stamp))
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
    """The token of the page that an append has left, whoever has written it since. Were it full then, nobody knows any
    more; an append on the token is in conflict in either case.
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


def _grown(before: Token, frames: tuple[Frame, ...], unfolds: bytes | None) -> Token:
    """The figures of a page with more frames, and other unfolds (None: those that it has)."""
    growth = frames_size(frames) - (_EMPTY_LIST if frames and before.appends else 0)
    taken = before.unfolds if unfolds is None else unfolds_size(unfolds)
    count = sum(frame.count for frame in frames)
    return replace(
        before,
        version=before.version + count,
        size=before.size + growth + taken - before.unfolds,
        carried=before.carried + growth,
        unfolds=taken,
        events=before.events + count,
        appends=before.appends + len(frames),
    )
