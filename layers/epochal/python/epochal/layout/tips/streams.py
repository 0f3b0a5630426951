"""Named streams as tips and calves: what the store asks of the layout (see `epochal.layout.streams`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from epochal.layout import streams
from epochal.layout.stored import EncodedUnfold
from epochal.layout.streams import PruneProgress, ReadPart, Rejected, Settled
from epochal.layout.tips import append, reading
from epochal.layout.tips.batch import Known, Result, in_wire_form
from epochal.layout.tips.calving import ROOM, ByCost, Calving
from epochal.layout.tips.items import StoredSpan, Tip, unfolds_size, write_unfold
from epochal.layout.tips.reading import Cursor
from epochal.model.times import unix_seconds
from epochal.model.versions import ExpectedVersion
from epochal.plan.ops import ITEM_BYTES, Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Tips:
    """Streams as tips and calves.

    Attributes:
        calving: when events leave the Tip.
    """

    calving: Calving = field(default_factory=ByCost)
    name = "tips"
    compress_from = 0

    def room(self, unfolds: Sequence[EncodedUnfold]) -> int:
        """Bytes that an append has beside these unfolds, in a Tip without other events."""
        return ITEM_BYTES - ROOM - unfolds_size(tuple(map(write_unfold, unfolds)))

    def append(self, table: str, batch: streams.Batch, expected: ExpectedVersion) -> Steps[Result]:
        """See `append.append`."""
        return append.append(table, in_wire_form(batch), expected, self.calving)

    def append_on(self, table: str, batch: streams.Batch, known: Known) -> Steps[Result]:
        """See `append.append_on`."""
        return append.append_on(table, in_wire_form(batch), known, self.calving, repeatable=batch.keyed)

    def append_once(
        self, table: str, batch: streams.Batch, expected: ExpectedVersion, key: str
    ) -> Steps[Result]:
        """See `layout.once`."""
        from epochal.layout.key_records import KeyRecord  # noqa: PLC0415  a function starts without it
        from epochal.layout.tips import keyed  # noqa: PLC0415  likewise

        record = KeyRecord.of(batch.stream, key, unix_seconds(batch.now))
        return keyed.append_once(table, in_wire_form(batch), expected, self.calving, record)

    def decided(self, table: str, head: Tip, append_id: bytes, since: int) -> Steps[Settled | None]:
        """See `append.decided`."""
        return append.decided(table, head, append_id, since)

    def load(
        self,
        table: str,
        stream: str,
        *,
        consistent: bool = True,
        whole: bool = False,  # noqa: ARG002  what was calved is elsewhere
    ) -> Steps[Tip | None]:
        """The Tip."""
        return reading.load_tip(table, stream, consistent=consistent)

    def begin(
        self,
        table: str,
        stream: str,
        start: int | None,
        *,
        forward: bool,
        limit: int | None = None,  # noqa: ARG002  a Tip is read first, whatever is wanted
    ) -> Steps[Cursor | None]:
        """See `reading.begin`."""
        return reading.begin(table, stream, start, forward=forward)

    def stand(self, head: Tip, start: int | None, *, forward: bool) -> Cursor:
        """See `reading.stand`."""
        return reading.stand(head, start, forward=forward)

    def advance(
        self, table: str, cursor: Cursor, limit: int | None, *, consistent: bool = True
    ) -> Steps[ReadPart[StoredSpan, Cursor]]:
        """See `reading.advance`. Equinox applications may prune the stream."""
        return reading.advance(table, cursor, limit, shared=True, consistent=consistent)

    def prune(self, table: str, stream: str, before: int, etag: str) -> Steps[PruneProgress | None]:
        """See `pruning`."""
        from epochal.layout.tips import pruning  # noqa: PLC0415  likewise

        return pruning.prune(table, stream, before, etag)

    def delete(
        self, table: str, stream: str, expected: ExpectedVersion, etag: str, *, leave_open: bool
    ) -> Steps[PruneProgress | Rejected[Tip]]:
        """See `pruning`."""
        from epochal.layout.tips import pruning  # noqa: PLC0415  likewise

        return pruning.delete(table, stream, expected, etag, leave_open=leave_open)

    def begin_pruned(self, table: str, batch: streams.Batch, index: int) -> Steps[None]:
        """See `pruning`."""
        from epochal.layout.tips import pruning  # noqa: PLC0415  likewise

        return pruning.begin_pruned(table, batch, index)

    def archive(self, table: str, into: str, stream: str, before: int, etags: Iterator[str]) -> Steps[int]:
        """See `archiving`."""
        from epochal.layout.tips import archiving  # noqa: PLC0415  few have an archive, and copy to it

        return archiving.archive(table, into, stream, before, etags)
