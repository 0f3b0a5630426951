"""Copying events to an archive, a table of the same layout, before they are pruned.

The archive's stream has the same events at the same indices, to the byte, so a reader goes on from one to the other.
Copying resumes where the archive's version says, whoever copied last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from epochal.errors import InvalidInput
from epochal.layout.expectations import version_of
from epochal.layout.streams import Written
from epochal.layout.tips.append import append
from epochal.layout.tips.batch import Known, WireBatch
from epochal.layout.tips.calving import Fixed
from epochal.layout.tips.items import StoredSpan, span_size
from epochal.layout.tips.reading import advance, begin, load_tip
from epochal.layout.tips.writes import token_of
from epochal.model.versions import NO_STREAM
from epochal.plan.ops import Steps

UNMARKED: Final = bytes(16)
"""Copied events keep the append ids they have; this one matches none of them."""

_CALVING: Final = Fixed(max_bytes=200 * 1024, mode="two-step")
"""An archive is written once and read many events at a time: few large items."""


def archive(table: str, into: str, stream: str, before: int, etags: Iterator[str]) -> Steps[int]:
    """Copy the events below `before` that the archive lacks; the version it has reached.

    Args:
        etags: fresh ones, for the archive's Tip.

    Raises:
        InvalidInput: events were pruned before they were archived, or the archive's stream was deleted.
    """
    while True:
        target = yield from load_tip(into, stream)
        if target is not None and target.deleted:
            raise InvalidInput("archive", f"takes no more of {stream}, which was deleted there")
        reached = 0 if target is None else target.version
        cursor = yield from begin(table, stream, reached)
        if cursor is None or reached >= min(before, cursor.head.version):
            return reached
        spans: Sequence[StoredSpan] = ()
        if cursor.at <= reached:
            part = yield from advance(table, cursor, shared=True)
            cursor, spans = part.cursor, part.spans
        if not spans:
            if version_of((yield from load_tip(into, stream))) > reached:
                continue  # another has copied and pruned them meanwhile
            raise InvalidInput("before", f"events {reached} to {cursor.at - 1} were pruned unarchived")
        at: Known = target
        for span in spans:
            at = yield from _copy(into, stream, span.before(before), at, next(etags))


def _copy(into: str, stream: str, span: StoredSpan, target: Known, etag: str) -> Steps[Known]:
    """Append a span to the archive. Where another copier was faster, nothing happens."""
    if not span.events or version_of(target) != span.base:
        return target
    batch = WireBatch(
        stream=stream, span=span, size=span_size(span), unfolds=None, etag=etag, append_id=UNMARKED
    )
    expected = NO_STREAM if target is None else token_of(target)
    result = yield from append(into, batch, expected, _CALVING, target)
    return result.token if isinstance(result, Written) else target
