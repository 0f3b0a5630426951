"""Copying events to an archive, a table of the same layout, before they are pruned.

The archive's stream has the same events at the same indices, to the byte, so a reader goes on from one to the other.
Copying resumes where the archive's version says, whoever copied last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from epochal.contrib.equinox.append import append
from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.port import advance, begin
from epochal.errors import InvalidInput
from epochal.index.tip import StoredSpan, load_tip, span_size
from epochal.index.tip_append import TipOrToken
from epochal.index.tip_writes import token_of
from epochal.index.wire_batch import WireBatch
from epochal.model.expected_version import NO_STREAM
from epochal.model.outcomes import Appended
from epochal.model.tokens import version_of
from epochal.plan.ops import Steps

UNMARKED: Final = bytes(16)
"""Append id of a copying write: copied events keep the append ids they have, and this one matches none of them."""

_CALVING: Final = Fixed(max_bytes=200 * 1024, mode="two-step")
"""Rule of calving of an archive, which has few large items: it is written once and read many events at a time."""


def archive(table: str, into: str, stream: str, before: int, etags: Iterator[str]) -> Steps[int]:
    """Copy a stream's events below `before` to its archive; return the version that the archive reaches.

    Events that the archive has already are not copied.

    Args:
        into: name of the archive's table.
        before: index of the first event that is not copied.
        etags: fresh etags, for the archive's Tip.

    Raises:
        InvalidInput: events were pruned before they were archived, or the archive's stream was deleted.
    """
    while True:
        target = yield from load_tip(into, stream)
        if target is not None and target.deleted:
            raise InvalidInput(
                "archive", f"contains {stream} as a deleted stream, and takes no more of its events"
            )
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
            raise InvalidInput(
                "before", f"events {reached} to {cursor.at - 1} were pruned, but never archived"
            )
        base: TipOrToken = target
        for span in spans:
            base = yield from _copy(into, stream, span.before(before), base, next(etags))


def _copy(into: str, stream: str, span: StoredSpan, target: TipOrToken, etag: str) -> Steps[TipOrToken]:
    """Append a span to the archive's stream; return the token after it, or `target` if nothing changed.

    If another copier was faster, the archive is left as it is, and the target is returned.
    """
    if not span.events or version_of(target) != span.base:
        return target
    batch = WireBatch(
        stream=stream, span=span, size=span_size(span), unfolds=None, etag=etag, append_id=UNMARKED
    )
    expected = NO_STREAM if target is None else token_of(target)
    result = yield from append(into, batch, expected, _CALVING, target)
    return result.token if isinstance(result, Appended) else target
