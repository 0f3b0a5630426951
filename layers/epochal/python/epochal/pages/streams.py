"""Appending: one conditional write of the last page, and everything that can come back from it.

    what is known         the last page, or a token of it: the write goes out      nothing: the page is read first
    the page is open      it is extended, if it is still at this revision and open
    the batch is too big  the page is closed first, if it is still at this revision and open; then
    the page is full      a new one is begun where it ends, if nothing is there

    refused               the page that stood in the way comes back, and `evidence` judges it
      ├ Applied                         appended: by this call, or by another under the same key or with the same ids
      ├ Unknowable                      undetermined
      └ NotApplied                      conflict; or, where any version will do, again on the last page

An extension names the exact state that it changes. A begin names a place only; so which page it follows is told by a
page, or by a token that was made from a page of this stream: any other may be forged, or be another stream's.

Several appends to the end of one stream as one write, a frame each, and what each of them is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from epochal.layout.streams import (
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
)
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import Ticks
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
from epochal.pages.evidence import (
    Applied,
    KeyedAppend,
    LookFurther,
    NotApplied,
    OwnWrite,
    Unknowable,
    Verdict,
    is_decision,
    is_pruned,
    was_applied,
)
from epochal.pages.items import Page, state_of
from epochal.pages.reading import advance, begin, load_head, load_whole, stand
from epochal.pages.writes import (
    ROOM,
    Blocked,
    Packed,
    Planned,
    head_from,
    joined,
    packed,
    place_of,
    write,
)
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Steps
from epochal.plugins import deferred

if TYPE_CHECKING:
    from epochal.layout.decision_keys import DecisionKey
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
    refused = yield from write(table, batch, known)
    if isinstance(refused, Planned):
        return refused.written
    head = yield from head_from(table, batch.stream, refused.page)
    since = version_of(known)
    result = yield from result_after_refusal(batch, head, since, refused, repeatable=repeatable)
    if result is None and batch.ids:
        from epochal.pages import identified  # noqa: PLC0415  likewise

        result = yield from identified.earlier_result(batch, head, since, anywhere=repeatable)
    return Rejected(head=head) if result is None else result


def result_after_refusal(
    batch: Packed, head: Page | None, since: int, refused: Blocked, *, repeatable: bool
) -> Steps[Settled | None]:
    """Return how an append ended whose write was refused; None if it was not applied.

    Args:
        head: last page of the stream.
        since: version that the write was for.
        repeatable: as in `append_on`.
    """
    if batch.keyed and batch.count:
        if refused.page is None:
            return None
        return (yield from result_under_key(batch, head, since, later=repeatable, refused=refused))
    result = own_result(batch, refused)
    if isinstance(result, Unknown) and not batch.count and repeatable and not _is_deleted(refused.page):
        return None  # unfolds alone may be written again
    return result


def own_result(batch: Packed, refused: Blocked) -> Settled | None:
    """Return how our own write ended, from the page that refused it; None if it was not applied."""
    planned = refused.planned
    if planned is None:
        return None
    match OwnWrite.of_joined(batch, planned, lost=refused.lost).judge(refused.page):
        case Applied() as applied:
            # The write says better than the page what it has left, if that was overwritten since.
            token = applied.page.token() if applied.is_latest else planned.token
            return Written(first=applied.first, version=applied.end, token=token)
        case Unknowable():
            return Unknown(first=planned.first)
        case NotApplied():
            return None


def result_under_key(
    batch: Packed, head: Page | None, since: int, *, later: bool, refused: Blocked | None = None
) -> Steps[Settled | None]:
    """Return the result of an append of events under the key of a batch, by any process; None if there is none.

    Args:
        head: last page of the stream.
        since: lowest index at which the append may be.
        later: whether it may be on a later page than the one with that index.
        refused: our own write, if it is the one that was refused.
    """
    if head is None or not batch.count:
        return None
    sought = KeyedAppend.of(batch, since, later=later)
    verdict: Verdict | LookFurther = NotApplied()
    if refused is not None and refused.page is not None:
        verdict = sought.judge(refused.page)
    if not isinstance(verdict, Applied):
        verdict = yield from was_applied(sought, [head])
    if isinstance(verdict, Applied):
        # Without a lost answer it is another's, even if that has the key, the moment and so the stamp. Two decisions
        # under one key at one moment have one stamp, whatever each of them has decided.
        planned = refused.planned if refused is not None and refused.lost else None
        own = planned is not None and planned.stamp == verdict.stamp and not is_decision(batch)
        return verdict.written(replayed=not own)
    return unknown_from(head, sought.first) if isinstance(verdict, Unknowable) else None


def decided(key: DecisionKey, head: Page, since: int) -> Steps[Settled | None]:
    """Return the result of a decision under a key, from index `since` on; None if there is none."""
    sought = KeyedAppend.of_decision(key, since)
    verdict = yield from was_applied(sought, [head])
    if isinstance(verdict, Applied):
        return verdict.written(replayed=True)
    return unknown_from(head, sought.first) if isinstance(verdict, Unknowable) else None


def unknown_from(head: Page, first: int) -> Unknown:
    """Return the result that events are pruned which would tell: from an index on.

    While a stream is being deleted, its last page loses its events first; then the append may be there.
    """
    return Unknown(first=max(first, head.index) if is_pruned(head, head.index) else first)


def _is_deleted(page: Page | None) -> bool:
    return page is not None and page.deleted


def is_new(known: Known[Page], above: Ticks) -> bool | None:
    """Whether nothing known of a stream was written after the moment that a key tells; None where it tells none."""
    if not above or known is None:
        return bool(above) or None
    place = place_of(known)
    return place is not None and place.time <= above


def append_whole(table: str, whole: Packed, known: Known[Page]) -> Steps[Result[Page]]:
    """Append joined batches on exactly the last page that is known."""
    refused = yield from write(table, whole, known)
    if isinstance(refused, Planned):
        return refused.written
    head = yield from head_from(table, whole.stream, refused.page)
    result = own_result(whole, refused)
    return Rejected(head=head) if result is None else result


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
    told_by = staticmethod(deferred("epochal.layout.key_moments:told_by"))
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
