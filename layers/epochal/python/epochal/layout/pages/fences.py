"""Fences: what a writer has read of a stream and does not write is still so when its append is made.

    the last page is open      it has the same revision: whatever is written to it moves that
    the last page is full      nothing is where the next one begins: it changes no more, but by prunes
    there is no stream         nothing is where its first page begins

So a fence is a condition on one item, which costs a transaction what a write to it costs. Where nothing is written at
all, the same items are read together, as they are at one moment, and held to the same conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from epochal.layout.expectations import version_of
from epochal.layout.pages.attempt import head_from
from epochal.layout.pages.items import Page, page_key, read_page
from epochal.layout.pages.reading import load_head
from epochal.layout.pages.writes import is_own, place_of, unchanged
from epochal.layout.streams import Known, Rejected
from epochal.plan.conditions import Absent
from epochal.plan.effects import holds
from epochal.plan.ops import Check, Steps, Together, TransactGet

StreamRead = tuple[str, Known[Page]]
"""A stream, and what is known of its last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFence:
    """A stream that is read only; `check` holds as long as nobody has written to it."""

    stream: str
    check: Check

    def on(self, head: Page | None) -> Rejected[Page]:
        """What is told of it where it does not hold."""
        return Rejected(head=head)


def fence(table: str, read: StreamRead) -> Steps[StreamFence | Rejected[Page]]:
    """The fence of a stream that was read; the last page, where what is known of it is of no page any more."""
    stream, known = read
    if isinstance(known, Page) and known.deleted:
        return Rejected(head=known)
    state = None if known is None else place_of(known)
    if known is not None and state is not None and not state.full:
        check = Check(
            table=table,
            key=page_key(stream, state.index),
            condition=unchanged(state, known.version),
        )
        return StreamFence(stream=stream, check=check)
    if known is not None and not is_own(table, stream, known):
        # It names a place only, and may be forged: the page tells whether it is there.
        head = yield from load_head(table, stream)
        if head is None or (head.version, head.etag) != (known.version, known.etag):
            return Rejected(head=head)
    free = Check(table=table, key=page_key(stream, version_of(known)), condition=Absent("i"))
    return StreamFence(stream=stream, check=free)


def confirm(table: str, reads: Sequence[StreamRead]) -> Steps[tuple[Rejected[Page] | None, ...]]:
    """For each stream None, if all of them were as they are known at one moment; else its last page, if it was not."""
    fences: list[StreamFence | Rejected[Page]] = []
    for read in reads:
        fences.append((yield from fence(table, read)))  # noqa: PERF401  a generator cannot be listed
    checks = [each.check for each in fences if isinstance(each, StreamFence)]
    if not checks or len(checks) < len(fences):
        return tuple(each if isinstance(each, Rejected) else None for each in fences)
    found: Together = yield TransactGet(keys=tuple((table, check.key) for check in checks))
    moved: list[Rejected[Page] | None] = []
    for (stream, _), check, item in zip(reads, checks, found.items, strict=True):
        if holds(check.condition, item):
            moved.append(None)
            continue
        page = None if item is None else read_page(item, table)
        moved.append(Rejected(head=(yield from head_from(table, stream, page))))
    return tuple(moved)
