"""The writes that append a batch to the last page: they extend it, close it, or begin the next one.

A planned write includes the token of the page after it, which is computed from FORMATS §8 without a read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from epochal.layout.streams import Known
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.expected_version import Expected
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended
from epochal.model.tokens import Token
from epochal.pages.batch import MARK_BYTES, Packed
from epochal.pages.frames import refer_to, stamp_of, time_of
from epochal.pages.fullness import REFER_FROM, fits, is_full
from epochal.pages.items import (
    REMOVING,
    Page,
    PageState,
    frames_size,
    origin,
    page_key,
    state_of,
    unfolds_size,
    write_frames,
    write_page,
)
from epochal.plan.conditions import Absent, All, Condition, equals
from epochal.plan.ops import Extend, Put, Set, Update
from epochal.plan.values import (
    AttributeValue,
    Key,
    attribute_size,
    binary,
    number,
    number_size,
    sequence,
    write_units,
)

ANYWHERE: Final = (Expected.ANY, Expected.STREAM_EXISTS)
"""Expected versions that a stream meets at any version, so that an append is retried on the newer last page."""


_EMPTY_LIST: Final = attribute_size("f", sequence(()))


_P = TypeVar("_P", bound="Planned | None")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A write of a stream's last page, and the token of the page that it leaves.

    Attributes:
        write: the write itself.
        stamp: stamp of the write, by which it is recognized.
        token: token of the page that the write leaves.
        onto: page or token that the write is made on; if that page was closed first, the closed page.
        count: number of events that it adds.
    """

    write: Put | Update
    stamp: bytes
    token: Token
    onto: Known[Page]
    count: int

    @property
    def first(self) -> int:
        """Index of the first event that the write adds."""
        return self.token.version - self.count

    @property
    def appended(self) -> Appended:
        """Outcome of the append, if the write is applied."""
        return Appended(first=self.first, version=self.token.version, token=self.token)

    @property
    def key(self) -> Key:
        """Primary key of the page that is written."""
        write = self.write
        return {name: (write.item if isinstance(write, Put) else write.key)[name] for name in ("p", "i")}


def token_of(known_head: Page | Token) -> Token:
    """Return the token of a known page, with the sizes that say how full the page is."""
    return known_head.token() if isinstance(known_head, Page) else known_head


def is_own(table: str, stream: str, known_head: Page | Token) -> bool:
    """Whether this process computed the page or token from the stream's pages; other tokens may be forged."""
    return isinstance(known_head, Page) or known_head.of == origin(table, stream)


def known_state(known_head: Page | Token) -> PageState | None:
    """Return the state of the known page: index, time, fullness; None if the token is of no page."""
    if isinstance(known_head, Page):
        return known_head.state
    return None if known_head.etag is None else state_of(known_head.etag)


def index_of(known_head: Page | Token) -> int:
    """Return the index of the first event of the known page."""
    state = known_state(known_head)
    return 0 if state is None else state.index


def may_be_followed(known_head: Known[Page]) -> bool:
    """Whether another page may follow the known one: only if the known one has events.

    Otherwise the next page would begin at the same place.
    """
    return known_head is not None and index_of(known_head) < known_head.version


def unchanged(state: PageState, version: int) -> All:
    """Build the condition that a page is still as it is known, and open.

    Index and time of what follows are taken from the page, and a token may be forged, so the condition has both.
    """
    return All((equals("r", number(state.time)), equals("n", number(version)), Absent("x")))


def _unchanged_with_mark(table: str, stream: str, known_head: Page | Token, state: PageState) -> All:
    """Build the condition `unchanged`, for a token from outside also with the low-water mark it names.

    The token that the write leaves has this mark, and so has the page that is begun on that.
    """
    same = unchanged(state, known_head.version)
    if is_own(table, stream, known_head):
        return same
    mark = equals("l", number(known_head.low_water)) if known_head.low_water else Absent("l")
    return All((*same.conditions, mark))


def as_read(page: Page) -> Condition:
    """Build the condition that a page is still as it was read."""
    return All((equals("r", number(page.time)), equals("n", number(page.version))))


def marking(etag: str, page: Page) -> bytes:
    """Make the stamp of a write that removes something from a page: one tick after the page's time.

    So no clock is needed for it.
    """
    return stamp_of(Ticks(page.time + 1), removing(etag))


def removing(etag: str) -> bytes:
    """Return the part after the time in the stamp of a write that removes events."""
    return bytes.fromhex(etag)[: MARK_BYTES - len(REMOVING)] + REMOVING


def unfolds_for_next(page: Page) -> bytes:
    """Return the unfolds that the page after a full one stores: a reference to large ones, else a copy."""
    large = page.unfolds_at is None and len(page.unfolds) >= REFER_FROM
    return refer_to(page.index) if large else page.unfolds


def plan_page(table: str, batch: Packed, known_head: Page | Token | None, unfolds: bytes) -> Planned:
    """Plan the write of a new page with a batch, after the known one or first; refused if it exists.

    The page says as well what is pruned: a deletion that was interrupted hides pages before it has emptied them.

    Args:
        unfolds: those stored, which stay where the batch does not replace them.
    """
    return _cheaper(batch, lambda candidate: _plan_page(table, candidate, known_head, unfolds))


def _plan_page(table: str, batch: Packed, known_head: Page | Token | None, unfolds: bytes) -> Planned:
    """Plan the write of a new page with a batch in exactly this packing."""
    state = None if known_head is None else known_state(known_head)
    index = 0 if known_head is None else known_head.version
    version = index + batch.count
    stamp = batch.stamp(None if state is None else state.time)
    page = Page(
        table=table,
        stream=batch.stream,
        index=index,
        version=version,
        frames=batch.frames(stamp),
        unfolds=unfolds if batch.unfolds is None else batch.unfolds_at(version),
        low_water=0 if known_head is None else known_head.low_water,
        stamp=None if batch.count else stamp,
    )
    before, token = None if known_head is None else token_of(known_head), page.token()
    if _is_full(index, token, before, token.carried if batch.before else 0):
        page = replace(page, full=True)
        token = page.token()
    put = Put(table=table, item=write_page(page), condition=Absent("i"))
    return Planned(write=put, stamp=stamp, token=token, onto=known_head, count=batch.count)


def plan_extension(table: str, batch: Packed, known_head: Page | Token) -> Planned | None:
    """Plan the write that adds a batch to the known page; None if it is full or has no room.

    A page without events accepts any batch, because a next page would begin at the same index.
    """
    return _cheaper(batch, lambda candidate: _plan_extension(table, candidate, known_head))


def _cheaper(batch: Packed, plan: Callable[[Packed], _P]) -> _P:
    """Plan the write of a batch, in a denser packing if that costs at least a write unit less."""
    planned = plan(batch)
    if planned is None:
        return planned
    size, gain = planned.token.size, batch.may_gain
    if write_units(size - gain) == write_units(size):
        return planned
    denser = plan(batch.denser())
    return denser if denser is not None and write_units(denser.token.size) < write_units(size) else planned


def _plan_extension(table: str, batch: Packed, known_head: Page | Token) -> Planned | None:
    """Plan the write that adds a batch in exactly this packing to the known page; None if impossible."""
    state, before = known_state(known_head), token_of(known_head)
    if state is None or state.full:
        return None
    stamp = batch.stamp(state.time)
    state_after = replace(state, time=time_of(stamp))
    frames, unfolds = write_frames(batch.frames(stamp)), batch.unfolds_at(before.version + batch.count)
    token = _grown(table, batch, before, frames, unfolds, states=(state, state_after))
    if state.index < before.version and not fits(before, token.size - before.size):
        return None
    joined = frames_size(frames) if batch.before else 0
    if _is_full(state.index, token, before, joined, keeps_unfolds=batch.unfolds is None):
        state_after = replace(state_after, full=True)
        token = replace(token, etag=state_after.etag())
    added = Extend("f", frames) if batch.count else Set("w", binary(stamp))
    update = Update(
        table=table,
        key=page_key(batch.stream, state.index),
        sets=(
            *_counters(state_after, token.version),
            added,
            *((Set("u", binary(unfolds)),) if unfolds else ()),
        ),
        removes=(
            *(("w",) if batch.count else ()),
            *(("u",) if batch.unfolds is not None and not unfolds else ()),
        ),
        condition=_unchanged_with_mark(table, batch.stream, known_head, state),
    )
    return Planned(write=update, stamp=stamp, token=token, onto=known_head, count=batch.count)


def close(table: str, batch: Packed, known_head: Page | Token, state: PageState) -> Planned:
    """Plan the write that closes the known page, so that no append extends it."""
    stamp = batch.mark_after(state.time)
    state_after = replace(state, full=True, time=time_of(stamp))
    update = Update(
        table=table,
        key=page_key(batch.stream, state.index),
        sets=(*_counters(state_after, known_head.version), Set("w", binary(stamp))),
        condition=unchanged(state, known_head.version),
    )
    token = replace(token_of(known_head), etag=state_after.etag(), of=origin(table, batch.stream))
    return Planned(write=update, stamp=stamp, token=token, onto=known_head, count=0)


def token_left_by(page: Page, version: int, stamp: bytes) -> Token:
    """Return the token of the page as an append left it, even if others have written to it since.

    It is unknown whether the page was full then; an append on the token conflicts in either case.
    """
    state = PageState(index=page.index, full=False, time=time_of(stamp))
    return Token(version=version, etag=state.etag())


def _counters(state: PageState, version: int) -> tuple[Set, ...]:
    """Make the updates of a page's version and time, and of `x` if the page is full."""
    full = (Set("x", number(1)),) if state.full else ()
    return (Set("n", number(version)), Set("r", number(state.time)), *full)


def _counters_size(time: Ticks, version: int) -> int:
    """Return the bytes of the numbers that every write sets anew.

    The zeroes that a number ends with take none, so the size may shrink.
    """
    return number_size(str(time)) + number_size(str(version))


def _is_full(
    index: int, token: Token, before: Token | None, joined: int, *, keeps_unfolds: bool = False
) -> bool:
    """Whether a page is full after a write; a page without events never is.

    Otherwise the next page would be begun at the same place.
    """
    return index < token.version and is_full(token, before, joined, keeps_unfolds=keeps_unfolds)


def _grown(
    table: str,
    batch: Packed,
    before: Token,
    frames: AttributeValue,
    unfolds: bytes,
    *,
    states: tuple[PageState, PageState],
) -> Token:
    """Compute the token that a write of `frames` and `unfolds` leaves on a page.

    `states` are those of the page before and after the write.
    """
    growth = frames_size(frames) - (_EMPTY_LIST if batch.count and before.appends else 0)
    unfolds_bytes = before.unfolds if batch.unfolds is None else unfolds_size(unfolds)
    version = before.version + batch.count
    counted = _counters_size(states[1].time, version) - _counters_size(states[0].time, before.version)
    return replace(
        before,
        version=version,
        etag=states[1].etag(),
        size=before.size + growth + unfolds_bytes - before.unfolds + counted,
        carried=before.carried + growth,
        unfolds=unfolds_bytes,
        events=before.events + batch.count,
        appends=before.appends + len(frames["L"]),
        of=origin(table, batch.stream),
    )
