"""Named streams as chains of pages: what the store asks of the layout (see `epochal.layout.streams`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from epochal.codec.bodies import MIN_SIZE
from epochal.layout.pages import append, reading
from epochal.layout.pages.batch import Packed, packed
from epochal.layout.pages.items import Page, PageSpan
from epochal.layout.pages.reading import Cursor
from epochal.layout.pages.writes import ROOM
from epochal.layout.streams import (
    Also,
    Answer,
    Batch,
    DecidedBefore,
    EncodedUnfold,
    Known,
    PruneProgress,
    ReadPart,
    Rejected,
    Result,
    Results,
    Settled,
    Unmet,
)
from epochal.model.times import Ticks, unix_seconds
from epochal.model.versions import ExpectedVersion, Token
from epochal.plan.ops import ITEM_BYTES, Steps

if TYPE_CHECKING:
    from epochal.layout.fences import Condition
    from epochal.layout.pages.dictionaries import InUse
    from epochal.layout.pages.mixed import MixedResult
    from epochal.layout.pages.tags.append import TaggedBatch
    from epochal.layout.pages.tags.entries import TagStreams

T = TypeVar("T")

COMPRESS_FROM: Final = 4 * 1024
"""Bodies of an append are compressed together, which a larger one does not gain from: it has enough of its own."""

_FIELDS: Final = 32
"""Bytes that an unfold takes besides its type and bodies, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Streams as chains of pages.

    Attributes:
        dictionaries: events are packed under their category's, where there is one; which, it remembers some minutes.
    """

    name = "pages"
    compress_from = COMPRESS_FROM
    keeps_unfolds = True

    dictionaries: bool = False
    _in_use: InUse = field(default_factory=dict, init=False, repr=False, compare=False)

    def room(self, unfolds: Sequence[EncodedUnfold]) -> int:
        """Bytes that an append has beside these unfolds, on a page of its own; nothing is compressed yet."""
        return ITEM_BYTES - ROOM - sum(map(_unfold_size, unfolds))

    def append(self, table: str, batch: Batch, expected: ExpectedVersion) -> Steps[Result[Page]]:
        """See `append.append`."""
        return (yield from append.append(table, (yield from self._packed(table, batch)), expected))

    def append_on(self, table: str, batch: Batch, known: Known[Page]) -> Steps[Result[Page]]:
        """See `append.append_on`."""
        packed = yield from self._packed(table, batch)
        return (yield from append.append_on(table, packed, known, repeatable=batch.keyed))

    def append_once(
        self, table: str, batch: Batch, expected: ExpectedVersion, key: str
    ) -> Steps[Answer[Page]]:
        """See `layout.once`."""
        from epochal.layout.key_records import KeyRecord  # noqa: PLC0415  a function starts without it: 2 ms
        from epochal.layout.pages import keyed  # noqa: PLC0415  likewise

        record = KeyRecord.of(batch.stream, key, unix_seconds(batch.now))
        packed = yield from self._packed(table, batch)
        return (yield from keyed.append_once(table, packed, expected, record))

    def decided(self, table: str, head: Page, append_id: bytes, since: int) -> Steps[Settled | None]:
        """See `append.decided`."""
        return append.decided(table, head, append_id, since)

    def append_all(
        self, table: str, appends: Sequence[tuple[Batch, ExpectedVersion]], also: Also = ()
    ) -> Steps[Results[Page] | Unmet]:
        """See `several`."""
        from epochal.layout.pages import several  # noqa: PLC0415  likewise

        return (
            yield from several.append_all(table, (yield from self._all_packed(table, appends)), also=also)
        )

    def append_all_once(
        self, table: str, appends: Sequence[tuple[Batch, ExpectedVersion]], key: str, also: Also = ()
    ) -> Steps[Results[Page] | Unmet]:
        """See `several`; to one stream alone it is `append_once`, under the stream's own key."""
        from epochal.layout.key_records import KeyRecord  # noqa: PLC0415  likewise
        from epochal.layout.pages import keyed, several  # noqa: PLC0415  likewise

        seconds = unix_seconds(appends[0][0].now)
        if len(appends) == 1:
            ((batch, expected),) = yield from self._all_packed(table, appends)
            record = KeyRecord.of(batch.stream, key, seconds)
            result = yield from keyed.append_once(table, batch, expected, record, also)
            return result if isinstance(result, Unmet) else (result,)
        record = KeyRecord.of_all((batch.stream for batch, _ in appends), key, seconds)
        batches = yield from self._all_packed(table, appends)
        return (yield from several.append_all(table, batches, record, also))

    def append_all_on(
        self,
        table: str,
        appends: Sequence[tuple[Batch, Known[Page]]],
        reads: Sequence[tuple[str, Known[Page]]],
        key: str | None = None,
        also: Also = (),
    ) -> Steps[Results[Page] | DecidedBefore | Unmet]:
        """As `append_all`, on states that the caller knows; of one alone that is keyed, as `layout.once` wants it."""
        from epochal.layout.pages import several  # noqa: PLC0415  likewise

        if len(appends) == 1 and appends[0][0].keyed:
            from epochal.layout.pages.keyed import PageAttempts  # noqa: PLC0415  likewise

            ((batch, known),) = yield from self._all_packed(table, appends)
            attempts = PageAttempts(table=table, batch=batch, also=also)
            result = yield from attempts.append_on(known, repeatable=True)
            return result if isinstance(result, Unmet) else (result,)
        batches = yield from self._all_packed(table, appends)
        once = None
        if key is not None and batches:
            names = [*(batch.stream for batch, _ in batches), *(stream for stream, _ in reads)]
            once = several.SeveralKey.of(names, key, batches[0][0].now)
        return (yield from several.append_all_on(table, batches, reads, once, also))

    def decided_all(
        self, table: str, streams: Sequence[str], key: str, now: Ticks
    ) -> Steps[DecidedBefore | None]:
        """See `several`."""
        from epochal.layout.pages import several  # noqa: PLC0415  likewise

        return several.SeveralKey.of(streams, key, now).before(table)

    def append_tagged(
        self,
        site: TagStreams,
        appends: Sequence[tuple[Batch, ExpectedVersion]],
        tagged: TaggedBatch,
        condition: Condition | None,
        key: str | None,
    ) -> Steps[MixedResult | Unmet]:
        """See `mixed`."""
        from epochal.layout.pages import mixed  # noqa: PLC0415  likewise

        batches = yield from self._all_packed(site.table, appends)
        return (yield from mixed.append(site, batches, tagged, condition, key))

    def append_together(
        self, table: str, batches: Sequence[Batch], start: Token | None
    ) -> Steps[tuple[Result[Page], ...]]:
        """See `append.append_together`."""
        packs: list[Packed] = []
        for batch in batches:
            packs.append((yield from self._packed(table, batch)))  # noqa: PERF401  a generator cannot be listed
        return (yield from append.append_together(table, packs, start))

    def load(
        self, table: str, stream: str, *, consistent: bool = True, whole: bool = False
    ) -> Steps[Page | None]:
        """The last page, and where all are wanted those of a short stream with it."""
        load = reading.load_whole if whole else reading.load_head
        return load(table, stream, consistent=consistent)

    def begin(
        self, table: str, stream: str, start: int | None, *, forward: bool, limit: int | None = None
    ) -> Steps[Cursor | None]:
        """See `reading.begin`."""
        return reading.begin(table, stream, start, forward=forward, limit=limit)

    def stand(self, head: Page, start: int | None, *, forward: bool) -> Cursor:
        """See `reading.stand`."""
        return reading.stand(head, start, forward=forward)

    def advance(
        self, table: str, cursor: Cursor, limit: int | None, *, consistent: bool = True
    ) -> Steps[ReadPart[PageSpan, Cursor]]:
        """See `reading.advance`."""
        return reading.advance(table, cursor, limit, consistent=consistent)

    def prune(self, table: str, stream: str, before: int, etag: str) -> Steps[PruneProgress | None]:
        """See `pruning`."""
        from epochal.layout.pages import pruning  # noqa: PLC0415  a function starts without it

        return pruning.prune(table, stream, before, etag)

    def delete(
        self, table: str, stream: str, expected: ExpectedVersion, etag: str, *, leave_open: bool
    ) -> Steps[PruneProgress | Rejected[Page]]:
        """See `pruning`."""
        from epochal.layout.pages import pruning  # noqa: PLC0415  likewise

        return pruning.delete(table, stream, expected, etag, leave_open=leave_open)

    def begin_pruned(self, table: str, batch: Batch, index: int) -> Steps[None]:
        """See `pruning`."""
        from epochal.layout.pages import pruning  # noqa: PLC0415  likewise

        return pruning.begin_pruned(table, batch, index)

    def archive(
        self,
        table: str,
        into: str,
        stream: str,
        before: int,
        etags: Iterator[str],  # noqa: ARG002  copied pages keep their own
    ) -> Steps[int]:
        """See `archiving`."""
        from epochal.layout.pages import pruning  # noqa: PLC0415  few have an archive, and copy to it

        return pruning.archive(table, into, stream, before)

    def _all_packed(self, table: str, appends: Sequence[tuple[Batch, T]]) -> Steps[list[tuple[Packed, T]]]:
        packs: list[tuple[Packed, T]] = []
        for batch, expected in appends:
            packs.append(((yield from self._packed(table, batch)), expected))
        return packs

    def _packed(self, table: str, batch: Batch) -> Steps[Packed]:
        """A batch, under the dictionary that is in use in its category."""
        if not self.dictionaries or not _may_gain(batch):
            return packed(batch)
        from epochal.layout.pages.dictionaries import in_use  # noqa: PLC0415  a function starts without it

        return packed(batch, (yield from in_use(self._in_use, table, batch.stream, batch.now)))


def _may_gain(batch: Batch) -> bool:
    """Whether its events may be compressed at all: of less than that nobody asks what they could be packed under."""
    return (
        sum(len(each.type) + len(each.data.data) + len(each.meta.data) for each in batch.events) >= MIN_SIZE
    )


def _unfold_size(unfold: EncodedUnfold) -> int:
    bodies = len(unfold.data.data) + len(unfold.meta.data)
    return _FIELDS + len(unfold.type.encode()) + bodies
