"""Prunes and deletes streams, and copies events to an archive first.

Pages are emptied, oldest first, but never removed: a writer with a token of a full page begins the next page if no item
is there. If that page had been removed, it would be begun again, and the stream would have a permanent fork. An emptied
page takes some sixty bytes.

    a page below the mark     loses its frames, and its unfolds unless the last page refers to them
    a page across the mark    loses the frames below the mark; its low-water mark says what is pruned of the next one
    the last page             the same, if it has not changed since it was read; it keeps its unfolds

A delete conflicts with the next append, as both write the same item. If the last page is full, the tombstone is a page
of its own: on the full page, it would not stop an append with an earlier token of that page.

The first page stores the index of the first event, so that readers can skip the empty pages.

An archive is a table of the same layout. It has the same pages without unfolds. A page is copied whole, and again once
it has grown, so the archive may have more events than requested. Copying continues at the archive's version, whoever
copied last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from epochal.errors import CorruptData, EpochalError, InvalidInput
from epochal.layout.outcomes import conflict_at
from epochal.layout.streams import Batch, PruneProgress, accepts
from epochal.lazy_dataclasses import replace
from epochal.model.expected_version import ExpectedVersion
from epochal.model.outcomes import Conflict
from epochal.model.tokens import version_of
from epochal.pages.attempts import head_from
from epochal.pages.batch import packed
from epochal.pages.frames import Frame, stamp_of
from epochal.pages.items import Page, page_key, read_page, write_page
from epochal.pages.reading import load_head, load_page, query
from epochal.pages.writes import as_read, marking, removing
from epochal.plan.conditions import Absent, All, AnyOf, Compare, Present
from epochal.plan.ops import Done, Put, Set, Steps, Update
from epochal.plan.values import number

PIECE: Final = 99
"""One query reads at most this many pages and one more."""

WRITES: Final = 500
"""Largest number of pages that one call empties: some seconds of requests, well within a bounded request (DESIGN
§5.16)."""


def prune(
    table: str, stream: str, before: int, etag: str, *, writes: int = WRITES
) -> Steps[PruneProgress | None]:
    """Prune events below `before` from up to `writes` pages; return the progress; None without a stream.

    Args:
        before: index of the first event that is kept; beyond the stream's version, all events are pruned.
        etag: random hex digits, from which the stamps of the changed pages are made.
    """
    head = yield from load_head(table, stream)
    if head is None:
        return None
    return (yield from _empty(table, head, min(before, head.version), etag, writes))


def delete(
    table: str, stream: str, expected: ExpectedVersion, etag: str, *, leave_open: bool, writes: int = WRITES
) -> Steps[PruneProgress | Conflict]:
    """Delete a stream, or empty it if `leave_open`, on up to `writes` pages; return progress or conflict.

    A deleted stream keeps a tombstone; its unfolds go, as do those of an emptied one. A delete of a deleted stream
    empties its remaining pages. A conflict is returned if the stream does not exist or does not have the expected
    version.
    """
    head = yield from load_head(table, stream)
    while head is not None and not _ended(head, leave_open=leave_open):
        if not accepts(expected, head):
            return conflict_at(head)
        end = _end_of(head, etag, leave_open=leave_open)
        reply = yield _ending(table, head, end)
        if isinstance(reply, Done):
            head = end
            break
        refusing = None if reply.item is None else read_page(reply.item, table)
        head = yield from head_from(table, stream, refusing)
        if head is not None and refusing is not None and reply.ambiguous and _follows(refusing, end):
            return (yield from _rest(table, head, end.version, etag, writes))
    if head is None:
        return conflict_at(None)
    return (yield from _rest(table, head, head.version, etag, writes))


def begin_pruned(table: str, batch: Batch, index: int) -> Steps[None]:
    """Write a stream's first page as a prune of all its events would leave it, unless there is one.

    Args:
        batch: the stream's unfolds, with the version that they are of.
        index: index of the first event that will be appended; events below it count as pruned.
    """
    unfolds = batch.unfolds or ()
    page = Page(
        table=table,
        stream=batch.stream,
        index=0,
        version=index,
        low_water=index,
        unfolds=packed(batch).unfolds_at(unfolds[0].version) if unfolds else b"",
        stamp=stamp_of(batch.now, removing(batch.etag)),
    )
    yield Put(table=table, item=write_page(page), condition=Absent("i"))


def _ended(head: Page, *, leave_open: bool) -> bool:
    """Whether a stream is deleted already, or emptied if it is to stay open."""
    return head.deleted or (leave_open and head.low_water == head.version and not head.unfolds)


def _end_of(head: Page, etag: str, *, leave_open: bool) -> Page:
    """Make the last page that remains of a stream when it is deleted or emptied."""
    return Page(
        table=head.table,
        stream=head.stream,
        index=head.version if head.full else head.index,
        version=head.version,
        full=not leave_open,
        deleted=not leave_open,
        low_water=head.version,
        stamp=marking(etag, head),
    )


def _ending(table: str, head: Page, target: Page) -> Put | Update:
    """Make the write of that last page: as a new page if the head is full, else over the head."""
    if head.full:
        return Put(table=table, item=write_page(target), condition=Absent("i"))
    return _update(table, head, target)


def _follows(page: Page, target: Page) -> bool:
    """Whether a page that another process wrote has lost at least what `target` loses."""
    return page.low_water >= target.low_water and page.deleted >= target.deleted and not page.unfolds


def _rest(table: str, head: Page, mark: int, etag: str, writes: int) -> Steps[PruneProgress]:
    """Prune the pages of a stream that was deleted or emptied at `mark`; readers see none of them."""
    return replace((yield from _empty(table, head, mark, etag, writes)), low_water=mark)


def _empty(table: str, head: Page, mark: int, etag: str, writes: int) -> Steps[PruneProgress]:
    """Remove what up to `writes` pages hold below the mark, oldest first; return the progress."""
    first = head if head.index == 0 else (yield from load_page(table, head.stream, 0))
    if first is None:
        raise CorruptData(f"{head.stream}: the first page is missing")
    low = first.low_water
    index = low if low >= first.version else 0
    written, holding = (
        (yield from _remove_old_unfolds(table, first, head, etag)) if index else 0,
        head.version,
    )
    while low < mark:
        for page in (yield from _pages_from(table, head, index, mark, writes - written)):
            keeps = page.index in (head.index, head.unfolds_at)
            emptied = _pruned(page, mark, etag, last=page.index == head.index, keeps=keeps)
            if emptied is not None:
                if written == writes:
                    break
                if not isinstance((yield _update(table, page, emptied)), Done):
                    head = yield from _read_head_again(table, head)
                    break
                written += 1
            if keeps and page.unfolds:
                holding = min(holding, page.index)
            low = max(low, min(page.version, mark))
            # The last page may grow, so its present end may not be the beginning of the next page.
            index = page.version if page.index != head.index and page.version <= mark else index
        if written == writes:
            break
    # The first page points no further than a page with unfolds in use, so that a later prune can remove these.
    yield from _write_low_water(table, first, min(index, holding), above=first.version)
    if low >= mark:
        # A reader that begins at the head learns the mark, too; later pages copy it from the head.
        yield from _write_low_water(table, head, mark if mark <= head.index else 0)
    return PruneProgress(low_water=low, deleted=written, done=low >= mark)


def _remove_old_unfolds(table: str, first: Page, head: Page, etag: str) -> Steps[int]:
    """Remove the unfolds of the first page if they are out of date; return 1 if it did, else 0.

    The page was pruned while it was the last one, and later prunes do not visit it again.
    """
    if not first.unfolds or 0 in (head.index, head.unfolds_at):
        return 0
    bare = replace(first, unfolds=b"", stamp=marking(etag, first))
    return int(isinstance((yield _update(table, first, bare)), Done))


def _pages_from(table: str, head: Page, index: int, mark: int, writes: int) -> Steps[tuple[Page, ...]]:
    """Read some pages below the mark, from the one that begins at `index`; raise `CorruptData` for a hole."""
    if index == head.index:
        return (head,)
    reply = yield query(table, head.stream, index, min(head.index, mark) - 1, limit=min(writes, PIECE) + 1)
    pages = tuple(read_page(item, table) for item in reply.items)
    ends = (index, *(page.version for page in pages))
    if not pages or any(page.index != end for page, end in zip(pages, ends, strict=False)):
        raise CorruptData(f"{head.stream}: the pages from event {index} on are not contiguous")
    return pages


def _read_head_again(table: str, head: Page) -> Steps[Page]:
    """Read the head again; raise `CorruptData` if the stream's pages have been removed."""
    fresh = yield from load_head(table, head.stream)
    if fresh is None:
        raise CorruptData(f"{head.stream}: its pages have been removed")
    return fresh


def _pruned(page: Page, mark: int, etag: str, *, last: bool, keeps: bool) -> Page | None:
    """Return the page without its pruned events, and without unfolds unless `keeps`; None if unchanged."""
    remaining = _from(page, mark)
    unfolds = page.unfolds if keeps else b""
    low_water = max(page.low_water, min(mark, page.version)) if last or remaining else page.low_water
    pruned = replace(page, frames=remaining, unfolds=unfolds, low_water=low_water)
    if pruned == page:
        return None
    return replace(pruned, stamp=marking(etag, page))


def _write_low_water(table: str, page: Page, mark: int, *, above: int = 0) -> Steps[None]:
    """Write the low-water mark `mark` into a page, unless the page has that or a higher one.

    This does not change the page's etag.
    """
    if mark > max(page.low_water, above):
        below = AnyOf((Absent("l"), Compare("l", "<", number(mark))))
        yield Update(
            table=table,
            key=page_key(page.stream, page.index),
            sets=(Set("l", number(mark)),),
            condition=All((Present("r"), below)),
        )


def _update(table: str, page: Page, target: Page) -> Update:
    """Make the write that replaces a page by a changed one, if it is still as it was read."""
    item = write_page(target)
    changed = ("r", "f", "u", "x", "z", "l", "w")
    return Update(
        table=table,
        key=page_key(page.stream, page.index),
        sets=tuple(Set(name, item[name]) for name in changed if name in item),
        removes=tuple(name for name in ("f", "u") if name not in item),
        condition=as_read(page),
    )


def archive(table: str, into: str, stream: str, before: int, _: Iterator[str] | None = None) -> Steps[int]:
    """Copy to the archive the pages with events below `before` that it lacks; return its version then.

    Copied pages keep their etags.

    Raises:
        InvalidInput: events were pruned before they were archived, or the archive's stream was deleted.
    """
    while True:
        target = yield from load_head(into, stream)
        if target is not None and target.deleted:
            raise InvalidInput("archive", f"has deleted {stream}, and takes no more of its events")
        reached = 0 if target is None else target.version
        head = yield from load_head(table, stream)
        if head is None or reached >= min(before, head.version):
            return reached
        page = yield from _holding(table, stream, reached)
        if page is None or page.span.base > reached:
            if version_of((yield from load_head(into, stream))) > reached:
                continue  # another process has copied and pruned them meanwhile
            raise _missing_events_error(stream, reached, page)
        # If another process was faster, the write is refused, and the next round reads what that process copied.
        yield _copy(into, page, target)


def _holding(table: str, stream: str, index: int) -> Steps[Page | None]:
    """Read the page that contains event `index`; None if no page does."""
    reply = yield query(table, stream, 0, index, forward=False, limit=1)
    pages = [read_page(item, table) for item in reply.items]
    return pages[0] if pages and pages[0].version > index else None


def _missing_events_error(stream: str, index: int, page: Page | None) -> EpochalError:
    """Make the error for events that the archive lacks and no page has any more."""
    if page is None:
        return CorruptData(f"{stream}: event {index} is in no page, but was not pruned")
    return InvalidInput("before", f"events {index} to {page.span.base - 1} were pruned, but never archived")


def _copy(into: str, page: Page, target: Page | None) -> Put:
    """Make the write that adds a page's events to the archive, if that is still as it was read.

    The page may have been pruned, too.
    """
    if target is not None and target.index == page.index:
        frames = (*target.frames, *_from(page, target.version))
        copied = replace(target, version=page.version, frames=frames, full=page.full, stamp=None)
        return Put(table=into, item=write_page(copied), condition=as_read(target))
    copied = Page(
        stream=page.stream, index=page.index, version=page.version, frames=page.frames, full=page.full
    )
    return Put(table=into, item=write_page(copied), condition=Absent("i"))


def _from(page: Page, index: int) -> tuple[Frame, ...]:
    """Return the page's frames, without those whose events are all below an index."""
    first, remaining = page.base, list(page.frames)
    while remaining and first + remaining[0].count <= index:
        first += remaining.pop(0).count
    return tuple(remaining)
