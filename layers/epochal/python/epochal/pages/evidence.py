"""Decides, from the pages of a stream, whether an append was applied.

The answer to a write may be lost, and another process may have appended the same. So an append that is refused is
looked for in its stream. Each page that is read leads to one verdict:

    Applied        the page shows the append
    NotApplied     the append is not in the stream, and a try that was refused can no longer be applied
    Unknowable     nobody can tell any more: what would show the append is pruned or replaced
    LookFurther    this page does not decide, but an older one may

What is looked for is one of three kinds. Each judges one page, by the first row of its table that holds.

`OwnWrite`: our own write, known by its stamp. A write names one state of one page, so only that page is judged. Stamps
increase along a stream, so a page whose latest stamp is below ours has never had ours.

    there is no page, or it is older than our write              NotApplied
    a frame of ours is missing, and not pruned                   NotApplied
    a frame of ours that has no key is there                     Applied
    our frames all have keys, are there, and an answer was lost  Applied
    our write was of unfolds alone, and is the page's latest     Applied
    no answer was lost                                           NotApplied
    our frames are pruned, or our unfolds replaced               Unknowable

A frame is missing too where the page ends below it: then the latest write had no events, and has changed the revision
that our write required.

`KeyedAppend`: an append under an idempotency key, by any process. Pages are judged from the last one back.

    the page has an append under the key                         Applied; an error if it has other contents
    the page goes back to the moment that the key tells          NotApplied
    the page begins above the first index, and is not pruned     LookFurther
    events from the first index on are pruned                    Unknowable
    none of these                                                NotApplied

`SameIds`: events with the same ids, at the expected index or anywhere. Pages are judged from the last one back.

    at the expected index there are other events                 NotApplied
    all of the ids are there, in a row                           Applied
    the page begins above the first index, and is not pruned     LookFurther
    anywhere, some of the ids are there                          NotApplied, with one of them
    events from the first index on are pruned                    Unknowable
    none of these                                                NotApplied

If a commit writes a record with the append, the record decides, and no page is judged: the record exists if and only if
the append was made. This applies to keys of several streams (`several_key`), to unfolds alone under a key
(`keyed_appends`), and to tagged events with ids (`tags/ids`).

Contents of pages are never compared, since two writers may append equal events. Not finding an append proves nothing by
itself. Absence is proved by a missing page (pages are never removed, see `pruning`), by a page that is older than our
write, by one that goes back to the key's moment, or by one that still has every event where the append could be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol, TypeAlias

from epochal.errors import CorruptData, InvalidInput
from epochal.layout.streams import NEVER, decided_events
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended
from epochal.pages.batch import WHOSE, Packed, rest_of
from epochal.pages.frames import TIME_BYTES, stamp_of, time_of
from epochal.pages.items import Page, read_page
from epochal.pages.reading import query
from epochal.pages.writes import Planned, token_left_by
from epochal.plan.ops import Items, Query, Steps

if TYPE_CHECKING:
    from epochal.layout.decision_keys import DecisionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The verdict that a page shows the append.

    Attributes:
        first: index of the first event of the append.
        end: index after its last event.
        stamp: stamp of its last frame.
        page: page with its last frame, as it was read.
    """

    first: int
    end: int
    stamp: bytes
    page: Page

    @property
    def is_latest(self) -> bool:
        """Whether nothing was written to the page after the append."""
        return self.page.version == self.end and self.page.stamp is None

    def appended(self, *, replayed: bool) -> Appended:
        """Return the outcome of the append, with the token of the page as the append left it.

        The token is never of a later state, even one with other unfolds alone: an append on such a token would replace
        what its caller has not seen.
        """
        token = self.page.token() if self.is_latest else token_left_by(self.page, self.end, self.stamp)
        return Appended(first=self.first, version=self.end, token=token, replayed=replayed)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplied:
    """The verdict that the append is not in the stream.

    Attributes:
        taken: label of one of its ids that is in the stream, though not with all the others in a row.
    """

    taken: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknowable:
    """The verdict that nobody can tell any more whether the append was applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookFurther:
    """The verdict that only an older page may tell; `sought` is what to look for there."""

    sought: Search


Verdict: TypeAlias = Applied | NotApplied | Unknowable
"""A final verdict."""


class Search(Protocol):
    """What is looked for on several pages, from the last one back."""

    growth: ClassVar[int]
    """Factor by which the number of pages in a request grows from one request to the next."""

    @property
    def first(self) -> int:
        """Lowest index that matters."""

    def judge(self, page: Page) -> Verdict | LookFurther:
        """Judge from one page whether the write was applied, or say that an older page must be read."""

    def search(self, page: Page) -> Query:
        """Make the first query for pages older than `page`."""


def was_applied(sought: Search, pages: Sequence[Page]) -> Steps[Verdict]:
    """Read pages of a stream, newest first, until one tells if the append was applied; return the verdict.

    Args:
        pages: last pages of the stream that were already read, newest first; at least the last one.

    Raises:
        CorruptData: a page is missing.
        InvalidInput: the idempotency key was used for other contents.
    """
    verdict = judge_in_turn(sought, pages)
    search, table = sought.search(pages[-1]), pages[0].table
    while isinstance(verdict, LookFurther):
        reply: Items = yield search
        verdict = judge_in_turn(verdict.sought, (read_page(item, table) for item in reply.items))
        if isinstance(verdict, LookFurther) and reply.last is None:
            raise CorruptData(f"{pages[0].stream}: event {sought.first} is missing: no page contains it")
        search = replace(search, after=reply.last, limit=search.limit and sought.growth * search.limit)
    return verdict


def judge_in_turn(sought: Search, pages: Iterable[Page]) -> Verdict | LookFurther:
    """Judge pages, newest first, until one decides; `LookFurther` if none does."""
    verdict = LookFurther(sought=sought)
    for page in pages:
        judged = verdict.sought.judge(page)
        if not isinstance(judged, LookFurther):
            return judged
        verdict = judged
    return verdict


def verdict_of_all(verdicts: Sequence[Verdict]) -> Verdict:
    """Combine the verdicts on writes that were applied all or none: one definite verdict is enough."""
    for kind in (Applied, NotApplied):
        for verdict in verdicts:
            if isinstance(verdict, kind):
                return verdict
    return Unknowable()


def is_pruned(page: Page, index: int) -> bool:
    """Whether a page has lost the event at an index, and all below, to a prune."""
    return page.base > index


# Our own write.


class OwnFrame(NamedTuple):
    """A frame of our own write.

    Attributes:
        first: index of its first event.
        stamp: its stamp.
        keyed: whether another process may have written the same frame, under the same idempotency key.
    """

    first: int
    stamp: bytes
    keyed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWrite:
    """Our own write of one page.

    Attributes:
        frames: the frames that it adds to the page; none, if it writes unfolds alone.
        end: the version that it leaves.
        stamp: its stamp.
        lost: whether an answer to it was lost. If none was, a refusal says that it was not applied.
    """

    frames: tuple[OwnFrame, ...]
    end: int
    stamp: bytes
    lost: bool

    @classmethod
    def of(cls, planned: Planned, *, lost: bool) -> OwnWrite:
        """Return a planned write of one batch without a key."""
        frames = (OwnFrame(planned.first, planned.stamp, keyed=False),) if planned.count else ()
        return cls(frames=frames, end=planned.token.version, stamp=planned.stamp, lost=lost)

    @classmethod
    def of_joined(cls, whole: Packed, planned: Planned, *, lost: bool) -> OwnWrite:
        """Make the `OwnWrite` of a planned write of joined batches, a frame each, with stamps one tick apart."""
        index, frames = planned.first, list[OwnFrame]()
        batches = (*whole.before, whole) if whole.count else ()
        for time, batch in enumerate(batches, time_of(planned.stamp) - len(whole.before)):
            frames.append(OwnFrame(index, stamp_of(Ticks(time), batch.rest), keyed=batch.keyed))
            index += len(batch.events)
        return cls(frames=tuple(frames), end=planned.token.version, stamp=planned.stamp, lost=lost)

    def judge(self, page: Page | None) -> Verdict:
        """Judge from the write's page as it is now, or None for no page, whether the write was applied."""
        if page is None or is_older(page, self.stamp) or lacks_own(page, self.frames):
            return NotApplied()
        if proves_own(page, self):
            first = self.frames[0].first if self.frames else self.end
            return Applied(first=first, end=self.end, stamp=self.stamp, page=page)
        return Unknowable() if self.lost else NotApplied()


def is_older(page: Page, stamp: bytes) -> bool:
    """Whether the latest write of a page is older than a stamp, so that the page has never had that stamp."""
    return page.time < time_of(stamp)


def lacks_own(page: Page, frames: Sequence[OwnFrame]) -> bool:
    """Whether a page lacks one of these frames, though it is not pruned there.

    It has a frame of another write there, or nothing.
    """
    stamps = stamps_of(page)
    return any(stamps.get(frame.first) != frame.stamp for frame in _kept(page, frames))


def proves_own(page: Page, write: OwnWrite) -> bool:
    """Whether a page proves that our write was applied.

    Requires `lacks_own` to be False: then each frame of ours that is not pruned is there, with our stamp. One under an
    idempotency key proves nothing by itself: another process may have written the same frame, at the same time and
    index.
    """
    if not write.frames:
        return page.stamp == write.stamp
    remaining = _kept(page, write.frames)
    return any(not frame.keyed for frame in remaining) or (write.lost and len(remaining) == len(write.frames))


def stamps_of(page: Page) -> Mapping[int, bytes]:
    """Return the stamp of each frame of a page, by the index of its first event."""
    stamps, index = dict[int, bytes](), page.base
    for frame in page.frames:
        stamps[index] = frame.stamp
        index += frame.count
    return stamps


def _kept(page: Page, frames: Sequence[OwnFrame]) -> list[OwnFrame]:
    """Return those of our frames that the page must still have, if our write was applied."""
    return [frame for frame in frames if not is_pruned(page, frame.first)]


# An append under an idempotency key.


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedAppend:
    """An append under an idempotency key, by any process.

    Attributes:
        rest: bytes after the time in its stamps: the key, and a digest of the contents or the mark of a decision.
        count: number of its events; None if it depends on the decision.
        first: lowest index at which it may be. What is below belongs to an earlier, expired use of the key.
        later: whether it may be on a later page than the one with `first`.
        above: the time that the key contains; no append under it is stamped at that time or before.
    """

    growth: ClassVar[int] = 4

    rest: bytes
    count: int | None
    first: int
    later: bool
    above: Ticks = NEVER

    @classmethod
    def of(cls, batch: Packed, first: int, *, later: bool) -> KeyedAppend:
        """Return the search for a batch under a key; if the key contains a time, that replaces `first`."""
        count = None if is_decision(batch) else batch.count
        first, later = (0, True) if batch.above else (first, later)
        return cls(rest=batch.rest, count=count, first=first, later=later, above=batch.above)

    @classmethod
    def of_decision(cls, key: DecisionKey, first: int) -> KeyedAppend:
        """Return the search for a decision under a key, whatever was decided."""
        rest, first = rest_of(key.append_id), 0 if key.above else first
        return cls(rest=rest, count=None, first=first, later=True, above=key.above)

    def judge(self, page: Page) -> Verdict | LookFurther:
        """Judge from one page whether the write was applied or nobody can tell, or ask for an older page.

        Raises:
            InvalidInput: the page has an append under the key with other contents.
        """
        applied = find_by_key(page, self)
        if applied is not None:
            return applied
        if goes_back_to(page, self.above):
            return NotApplied()
        # Where a stream is being deleted, the last page loses its events first.
        if page.index > self.first and not is_pruned(page, page.index):
            return LookFurther(sought=self)
        return Unknowable() if is_pruned(page, max(self.first, page.index)) else NotApplied()

    def search(self, page: Page) -> Query:
        """Make the first query for older pages: a repeat follows its first try closely, so newest first."""
        highest = page.index - 1 if self.later else self.first
        limit = FIRST_PAGES if self.above else None if self.later else 1
        return query(page.table, page.stream, 0, highest, forward=False, limit=limit)


FIRST_PAGES: Final = 4
"""Pages in the first request for what a key may have appended, if the key tells a moment: it is rarely far back."""


def is_decision(batch: Packed) -> bool:
    """Whether a batch is a decision under a key, which may have come out otherwise in another process."""
    return batch.keyed and decided_events(batch.append_id) is not None


def find_by_key(page: Page, sought: KeyedAppend) -> Applied | None:
    """Return the append under a key on a page, or None; raise `InvalidInput` if its contents differ.

    Raises:
        InvalidInput: the page has an append under the key with other contents.
    """
    first = page.base
    for frame in page.frames:
        end = first + frame.count
        if first >= sought.first and _is_of_key(frame.stamp[TIME_BYTES:], sought):
            count = frame.count if sought.count is None else sought.count
            return Applied(first=end - count, end=end, stamp=frame.stamp, page=page)
        first = end
    return None


def _is_of_key(rest: bytes, sought: KeyedAppend) -> bool:
    if rest != sought.rest and rest[:WHOSE] == sought.rest[:WHOSE]:
        raise InvalidInput("idempotency_key", "was already used for an append with other contents")
    return rest == sought.rest


def goes_back_to(page: Page, moment: Ticks) -> bool:
    """Whether all older pages, and what was pruned of them, are as old as a moment, or older."""
    return min([page.time, *(time_of(frame.stamp) for frame in page.frames[:1])]) <= moment


# Events with the same ids.


@dataclass(frozen=True, slots=True, kw_only=True)
class SameIds:
    """Events with the same ids, in one row, by any process.

    Attributes:
        ids: labels of the ids, in order.
        first: index of the first event, or the lowest index where it may be.
        end: index after the last event that is looked at.
        anywhere: whether the events may be anywhere from `first` to `end`; if not, they are exactly there.
        pages: pages that were judged before, newest first.
        labels: labels of the events on those pages, oldest first.
        most: number of pages in a request for older ones.
    """

    growth: ClassVar[int] = 1

    ids: tuple[bytes, ...]
    first: int
    end: int
    anywhere: bool
    most: int
    pages: tuple[Page, ...] = ()
    labels: tuple[bytes, ...] = ()

    def judge(self, page: Page) -> Verdict | LookFurther:
        """Judge from a page and the newer ones whether the ids were appended, or ask for an older page."""
        sought = self._with(page)
        if not self.anywhere and sought.shows_others():
            return NotApplied()
        first = sought.find()
        if first is not None:
            return sought.applied(first)
        if page.index > self.first and not is_pruned(page, page.index):
            return LookFurther(sought=sought)
        taken = sought.taken if self.anywhere else None
        if taken is None and is_pruned(page, self.first):
            return Unknowable()
        return NotApplied(taken=taken)

    def search(self, page: Page) -> Query:
        """Make the first query for older pages."""
        highest = min(page.index, self.end) - 1
        return query(page.table, page.stream, 0, highest, forward=False, limit=self.most)

    def shows_others(self) -> bool:
        """Whether the events seen so far are not the last ones of those that are looked for."""
        return self.labels != self.ids[len(self.ids) - len(self.labels) :]

    def find(self) -> int | None:
        """Return the index of the first of all ids in a row; None if they are not there."""
        size, lowest = len(self.ids), self.end - len(self.labels)
        for place in range(len(self.labels) - size, -1, -1):
            if self.labels[place : place + size] == self.ids:
                return lowest + place
        return None

    def applied(self, first: int) -> Applied:
        """Return the verdict that the events are there from an index on."""
        end = first + len(self.ids)
        page = next(page for page in self.pages if page.base < end <= page.version)
        stamps = [stamp for index, stamp in stamps_of(page).items() if index < end]
        return Applied(first=first, end=end, stamp=stamps[-1], page=page)

    @property
    def taken(self) -> bytes | None:
        """Label of one of the ids that is among the events seen so far; None if none is."""
        labels = set(self.labels)
        return next((label for label in self.ids if label in labels), None)

    def _with(self, page: Page) -> SameIds:
        """Return the same, with one page more that was judged."""
        labels = (*_labels(page, self.first, self.end), *self.labels)
        return replace(self, pages=(*self.pages, page), labels=labels)


def _labels(page: Page, first: int, end: int) -> list[bytes]:
    """Return the labels of the events on a page from one index up to another."""
    labels, index = list[bytes](), page.base
    for position, frame in enumerate(page.frames):
        start, index = index, index + frame.count
        if start < end and index > first:
            events = enumerate(page.read_frame(position), start)
            labels += [event.label for place, event in events if first <= place < end]
    return labels
