"""Appending: one conditional write of the last page, and everything that can come back from it.

    what is known         the last page, or a token of it: the write goes out      nothing: the page is read first
    the page is open      it is extended, if it is still at this revision and open
    the batch is too big  the page is closed first, if it is still at this revision and open; then
    the page is full      a new one is begun where it ends, if nothing is there

    refused               the page that stood in the way comes back
      ├ it holds our stamp              appended: a response was lost, or the key was used before
      ├ our index has been pruned       undetermined
      └ none of these                   conflict; or, where any version will do, again on the last page

An extension names the exact state that it changes. A begin names a place only; so which page it follows is told by a
page, or by a token that was made from a page of this stream: any other may be forged, or be another stream's.

Finding an append by its stamp, to tell our own write from another's after a lost response.

Contents are never compared: two writers may append equal events. Nor is an append taken for absent because it was not
found: only a page that holds the events at every index where it may be shows that.

Several appends to the end of one stream as one write, a frame each, and what each of them is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from epochal.errors import CorruptData, InvalidInput
from epochal.layout.streams import (
    NEVER,
    Also,
    Answer,
    Batch,
    DecidedBefore,
    EncodedUnfold,
    Known,
    Rejected,
    Result,
    Results,
    Settled,
    Unknown,
    Unmet,
    Written,
    accepts,
    decided_events,
)
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Ticks
from epochal.model.versions import (
    ANY,
    UNREAD,
    Expected,
    ExpectedVersion,
    Token,
    Unread,
    expected_head,
    version_of,
)
from epochal.pages.frames import time_of
from epochal.pages.items import Page, read_page, state_of
from epochal.pages.reading import advance, begin, load_head, load_whole, query, stand
from epochal.pages.writes import (
    ROOM,
    WHOSE,
    Blocked,
    Packed,
    Planned,
    head_from,
    joined,
    left_by,
    packed,
    place_of,
    rest_of,
    write,
)
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Items, Steps
from epochal.plugins import deferred

if TYPE_CHECKING:
    from epochal.layout.once import DecisionKey
    from epochal.layout.queries import Condition
    from epochal.pages.tags.append import MixedResult, TaggedBatch
    from epochal.pages.tags.entries import TagStreams


ANYWHERE: Final = (Expected.ANY, Expected.STREAM_EXISTS)
"""Expectations of no place: on whatever comes back the append goes on."""


def append(
    table: str, batch: Packed, expected: ExpectedVersion, start: Known[Page] | Unread = UNREAD
) -> Steps[Result[Page]]:
    """Append `batch`, beginning from `start` or, where that is unread, from what `expected` tells.

    Raises:
        TooLarge: the events do not fit an item.
        InvalidInput: the idempotency key was used for other events; the stream is full.
    """
    known: Known[Page] | Unread = expected_head(expected) if start is UNREAD else start
    if known is UNREAD and batch.ids:
        from epochal.pages import identified  # noqa: PLC0415  a function starts without it

        found = yield from identified.begin(table, batch, expected)
        if isinstance(found, Written | Unknown | Rejected):
            return found
        known = found
    elif known is UNREAD:
        known = yield from load_head(table, batch.stream)
        if not accepts(expected, known):
            return Rejected(head=known)
    while True:
        result = yield from append_on(table, batch, known, repeatable=expected in ANYWHERE)
        if not isinstance(result, Rejected) or not accepts(expected, result.head):
            return result
        known = result.head


def append_on(
    table: str, batch: Packed, known: Known[Page], *, repeatable: bool = False
) -> Steps[Result[Page]]:
    """Append on exactly the last page that is known (None: no stream yet). Any other is a rejection, which brings it.

    Args:
        repeatable: unfolds alone may be written again where nobody can tell whether they were; events under a key, or
            with ids, may stand later than on what is known, by another process.
    """
    sent = yield from write(table, batch, known)
    if isinstance(sent, Planned):
        return sent.written
    head = yield from head_from(table, batch.stream, sent.page)
    settled = yield from settle(table, batch, head, version_of(known), repeatable=repeatable, blocked=sent)
    if settled is None and batch.ids:
        from epochal.pages import identified  # noqa: PLC0415  likewise

        settled = yield from identified.settle(table, batch, head, version_of(known), anywhere=repeatable)
    return Rejected(head=head) if settled is None else settled


def settle(
    table: str,
    batch: Packed,
    head: Page | None,
    since: int,
    *,
    repeatable: bool,
    blocked: Blocked | None = None,
) -> Steps[Settled | None]:
    """How an append has already ended, from index `since` on, or None: it has not been made. Unless it was `blocked`
    itself, another process may have made it.
    """
    page, planned = (head, None) if blocked is None else (blocked.page, blocked.planned)
    if head is None or page is None:
        return None
    if not batch.count:
        return _settle_unfolds(planned, page, repeatable=repeatable)
    if batch.keyed and batch.above:
        since, repeatable = 0, True  # the key's own time ends the search
    # Every try names a state or a place, so ours is where we tried, if anywhere. Only a try of another process, known
    # by a key, may be later.
    wanted = sought(batch)
    found: FoundAppend | Earlier = in_page(page, wanted, since) or absent_from(page, since)
    if not isinstance(found, FoundAppend) and batch.keyed:
        found = yield from find(table, head, wanted, since, or_later=repeatable)
    if isinstance(found, FoundAppend):
        # Without a lost answer it is another's, even if that has the key, the moment and so the stamp.
        return _already(batch, planned, found)
    doubtful = found is Earlier.PRUNED and (planned is not None or batch.keyed)
    return _pruned(head, since) if doubtful else None


def decided(key: DecisionKey, head: Page, since: int) -> Steps[Settled | None]:
    """The outcome of a decision under a key, from index `since` on, or None if there is none."""
    wanted = SoughtDecision(rest=rest_of(key.append_id), above=key.above)
    found = yield from find(key.table, head, wanted, 0 if key.above else since, or_later=True)
    if isinstance(found, FoundAppend):
        return written_by(found, replayed=True)
    return _pruned(head, since) if found is Earlier.PRUNED else None


def _pruned(head: Page, since: int) -> Unknown:
    """Events are gone that would tell: from there on or, while the stream is being deleted, from the last page on."""
    return Unknown(first=max(since, head.index) if absent_from(head, head.index) is Earlier.PRUNED else since)


def _settle_unfolds(planned: Planned | None, page: Page, *, repeatable: bool) -> Settled | None:
    """Unfolds alone leave no trace once replaced; where they may have been, they are written again."""
    if planned is None:
        return None
    if page.stamp == planned.stamp:
        return Written(first=page.version, version=page.version, token=planned.token)
    return None if repeatable and not page.deleted else Unknown(first=planned.token.version)


def _already(batch: Packed, planned: Planned | None, found: FoundAppend) -> Written:
    """The token is of the page that the append left, never of one that another has written since, if only unfolds: an
    append on that would replace what its writer has not seen.

    Another process may have the key, and even the moment: what it has made of the page, nobody else knows.
    """
    # Two that decide under one key at one moment have one stamp, whatever each of them has decided.
    ours = planned is not None and planned.stamp == found.stamp and not is_decision(batch)
    left = written_by(found, replayed=batch.keyed and not ours)
    as_found = found.page.version == found.end and found.page.stamp is None
    if planned is not None and ours and not batch.keyed and not as_found:
        return replace(left, token=planned.token)
    return left


def written_by(found: FoundAppend, *, replayed: bool) -> Written:
    """The outcome of an append that was found."""
    page, version = found.page, found.end
    as_left = page.version == version and page.stamp is None
    token = page.token() if as_left else left_by(page, version, found.stamp)
    return Written(first=found.first, version=version, token=token, replayed=replayed)


class Earlier(Enum):
    """What a search that found nothing means."""

    ABSENT = "absent"
    PRUNED = "pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtDecision:
    """A decision, looked for by the key that it was made under."""

    rest: bytes
    above: Ticks
    keyed = True
    count = None


Sought: TypeAlias = Packed | SoughtDecision
"""What an append is looked for by: what follows the time in its stamp, and how many events it has, with those that went
out with it; None where that depends on what was decided."""


def sought(batch: Packed) -> Sought:
    """What a batch is looked for by."""
    return SoughtDecision(rest=batch.rest, above=batch.above) if is_decision(batch) else batch


def is_decision(batch: Packed) -> bool:
    """Whether it is what was decided, which may be otherwise where that is done again."""
    return batch.keyed and decided_events(batch.append_id) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAppend:
    """An append that has been made: its first index and the one after its last, its stamp, and the page that holds it,
    as it was read.
    """

    first: int
    end: int
    stamp: bytes
    page: Page


def in_page(page: Page, batch: Sought, since: int) -> FoundAppend | None:
    """The append, if the page holds it at index `since` or later. What is below that is of a key that was used before,
    and has been forgotten since.

    Raises:
        InvalidInput: an append under the same idempotency key holds other events.
    """
    first = page.base
    for frame in page.frames:
        end = first + frame.count
        if first >= since and _is_of(frame.stamp[8:], batch):
            count = frame.count if batch.count is None else batch.count
            return FoundAppend(first=end - count, end=end, stamp=frame.stamp, page=page)
        first = end
    return None


def find(table: str, head: Page, batch: Sought, at: int, *, or_later: bool) -> Steps[FoundAppend | Earlier]:
    """An append whose first event has index `at`, or with `or_later` any from there on. Raises as `in_page` does."""
    found = _told_by(head, batch, at)
    # Newest first: a retry follows its first try closely.
    pages = query(
        table,
        head.stream,
        0,
        head.index - 1 if or_later else at,
        forward=False,
        # Where a key's moment ends the search, that is rarely far back.
        limit=4 if batch.keyed and batch.above else None if or_later else 1,
    )
    while found is None:
        reply: Items = yield pages
        told = (_told_by(read_page(item, table), batch, at) for item in reply.items)
        found = next((each for each in told if each is not None), None)
        if found is None and reply.last is None:
            raise CorruptData(f"{head.stream}: event {at} is in no page")
        pages = replace(pages, after=reply.last, limit=pages.limit and 4 * pages.limit)
    return found


def _told_by(page: Page, batch: Sought, at: int) -> FoundAppend | Earlier | None:
    """What a page says of an append from index `at` on; None: those before it are to be asked."""
    found, above = in_page(page, batch, at), batch.above if batch.keyed else NEVER
    if found is None and min([page.time, *(time_of(each.stamp) for each in page.frames[:1])]) <= above:
        return Earlier.ABSENT  # all before is of the key's moment or older, as is what was pruned of it
    # The last page loses its events first where a stream is deleted.
    if found is None and page.index > at and absent_from(page, page.index) is Earlier.ABSENT:
        return None
    return found or absent_from(page, max(at, page.index))


def is_new(known: Known[Page], above: Ticks) -> bool | None:
    """Whether nothing known of a stream was written after the moment that a key tells; None where it tells none."""
    if not above or known is None:
        return bool(above) or None
    place = place_of(known)
    return place is not None and place.time <= above


def absent_from(page: Page, at: int) -> Earlier:
    """The conclusion if an append is not among the page's events from index `at` on."""
    return Earlier.PRUNED if page.base > at else Earlier.ABSENT


def _is_of(rest: bytes, batch: Sought) -> bool:
    if rest == batch.rest:
        return True
    if batch.keyed and rest[:WHOSE] == batch.rest[:WHOSE]:
        raise InvalidInput("idempotency_key", "was used before for other contents")
    return False


def append_whole(table: str, whole: Packed, known: Known[Page]) -> Steps[Result[Page]]:
    """Append joined batches on exactly the last page that is known."""
    sent = yield from write(table, whole, known)
    if isinstance(sent, Planned):
        return sent.written
    head = yield from head_from(table, whole.stream, sent.page)
    if sent.planned is None or sent.page is None:
        return Rejected(head=head)
    made = _is_made(whole, sent.planned, sent.page)
    if made:
        return sent.planned.written
    return Unknown(first=sent.planned.first) if made is None else Rejected(head=head)


def _is_made(whole: Packed, planned: Planned, page: Page) -> bool | None:
    """Whether joined batches were written together, by what is left of the page that they are for; None: too little is.
    Of a keyed one by itself that does not tell: another process may have written it, at the same moment and place.
    """
    there, at = dict[int, bytes](), page.base
    for frame in page.frames:
        there[at] = frame.stamp
        at += frame.count
    index, left, telling = planned.first, list[bool](), False
    for frame, batch in zip(whole.frames(planned.stamp), (*whole.before, whole), strict=True):
        if index >= page.base:
            left.append(there.get(index) == frame.stamp)
            telling = telling or not batch.keyed
        index += frame.count
    if not all(left):
        return False
    return True if telling or len(left) > len(whole.before) else None


def _told(batches: Sequence[Packed], result: Result[Page]) -> Iterator[Result[Page]]:
    if isinstance(result, Rejected):
        yield from (result for _ in batches)
        return
    at = result.first
    for later, batch in zip(range(len(batches) - 1, -1, -1), batches, strict=True):
        first, at = at, at + batch.count
        if isinstance(result, Unknown):
            yield Unknown(first=first)
        else:
            token = _overtaken(result.token, at, later) if later else result.token
            yield Written(first=first, version=at, token=token, replayed=result.replayed)


def _overtaken(token: Token, version: int, later: int) -> Token:
    """Of what an append would have left, had not so many others come with it: one on it is in conflict."""
    state = state_of(token.etag or "")
    if state is None:
        return Token(version=version, etag=token.etag)
    return Token(version=version, etag=replace(state, full=False, time=Ticks(state.time - later)).etag())


# What the store asks of the layout (see `epochal.layout.streams`).

T = TypeVar("T")

COMPRESS_FROM: Final = 4 * 1024
"""Bodies of an append are compressed together, which a larger one does not gain from: it has enough of its own."""

_FIELDS: Final = 32
"""Bytes that an unfold takes besides its type and bodies, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Streams as chains of pages."""

    name = "pages"
    compress_from = COMPRESS_FROM
    keeps_unfolds = True
    keeps_ids = True

    def room(self, unfolds: Sequence[EncodedUnfold]) -> int:
        """Bytes that an append has beside these unfolds, on a page of its own; nothing is compressed yet."""
        return ITEM_BYTES - ROOM - sum(map(_unfold_size, unfolds))

    def append(
        self, table: str, batch: Batch, expected: ExpectedVersion, key: str | None = None
    ) -> Steps[Answer[Page]]:
        """See `append`, and of a keyed one `several.append_once`."""
        if key is None:
            return (yield from append(table, packed(batch), expected))
        from epochal.pages import several  # noqa: PLC0415  a function starts without it: 2 ms

        return (yield from several.append_once(table, packed(batch), expected, key))

    def append_on(self, table: str, batch: Batch, known: Known[Page]) -> Steps[Result[Page]]:
        """See `append_on`."""
        return (yield from append_on(table, packed(batch), known, repeatable=batch.keyed))

    decided = staticmethod(decided)
    told_by = staticmethod(deferred("epochal.layout.once:told_by"))
    is_new = staticmethod(is_new)
    decided_all = staticmethod(deferred("epochal.pages.several:decided_all"))
    prune = staticmethod(deferred("epochal.pages.pruning:prune"))
    delete = staticmethod(deferred("epochal.pages.pruning:delete"))
    begin_pruned = staticmethod(deferred("epochal.pages.pruning:begin_pruned"))
    archive = staticmethod(deferred("epochal.pages.pruning:archive"))

    def append_all(
        self,
        table: str,
        appends: Sequence[tuple[Batch, ExpectedVersion]],
        key: str | None = None,
        also: Also = (),
    ) -> Steps[Results[Page] | Unmet]:
        """See `several`."""
        from epochal.pages import several  # noqa: PLC0415  likewise

        return (yield from several.append_all(table, _all_packed(appends), key, also))

    def append_all_on(
        self,
        table: str,
        appends: Sequence[tuple[Batch, Known[Page]]],
        reads: Sequence[tuple[str, Known[Page]]],
        key: str | None = None,
        also: Also = (),
    ) -> Steps[Results[Page] | DecidedBefore | Unmet]:
        """See `several`."""
        from epochal.pages import several  # noqa: PLC0415  likewise

        return (yield from several.append_all_on(table, _all_packed(appends), reads, key, also))

    def append_tagged(
        self,
        site: TagStreams,
        appends: Sequence[tuple[Batch, ExpectedVersion]],
        tagged: TaggedBatch,
        condition: Condition | None,
        key: str | None,
        *,
        reads: Mapping[str, Known[Page]] | None = None,
        decided: bool = False,
    ) -> Steps[MixedResult | Unmet]:
        """See `tags.append`."""
        from epochal.pages.tags.append import append_mixed  # noqa: PLC0415  likewise

        batches = _all_packed(appends)
        return (yield from append_mixed(site, batches, tagged, condition, key, reads=reads, decided=decided))

    def append_together(
        self, table: str, batches: Sequence[Batch], start: Token | None
    ) -> Steps[tuple[Result[Page], ...]]:
        """Append all of them in their order, or none, whatever the stream's version is. Raises as `append` does."""
        packs = [packed(batch) for batch in batches]
        result = yield from append(table, joined(packs), ANY, UNREAD if start is None else start)
        return tuple(_told(packs, result))

    def append_together_on(
        self, table: str, batches: Sequence[Batch], known: Known[Page]
    ) -> Steps[tuple[Result[Page], ...]]:
        """See `append_whole`."""
        packs = [packed(batch) for batch in batches]
        result = yield from append_whole(table, joined(packs), known)
        return tuple(_told(packs, result))

    def load(
        self, table: str, stream: str, *, consistent: bool = True, whole: bool = False
    ) -> Steps[Page | None]:
        """The last page, and where all are wanted those of a short stream with it."""
        load = load_whole if whole else load_head
        return load(table, stream, consistent=consistent)

    begin = staticmethod(begin)
    stand = staticmethod(stand)
    advance = staticmethod(advance)


def _all_packed(appends: Sequence[tuple[Batch, T]]) -> list[tuple[Packed, T]]:
    return [(packed(batch), expected) for batch, expected in appends]


def _unfold_size(unfold: EncodedUnfold) -> int:
    bodies = len(unfold.data.data) + len(unfold.meta.data)
    return _FIELDS + len(unfold.type.encode()) + bodies
