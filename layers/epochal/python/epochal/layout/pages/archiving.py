"""Copying events to an archive, a table of the same layout, before they are pruned.

The archive has the same pages, without unfolds: a page is copied whole, and again once it has grown. So a copy may have
more than it was asked for. Copying resumes where the archive's version says, whoever copied last.
"""

from __future__ import annotations

from dataclasses import replace

from epochal.errors import CorruptData, EpochalError, InvalidInput
from epochal.layout.expectations import version_of
from epochal.layout.pages.frames import Frame
from epochal.layout.pages.items import Page, read_page, write_page
from epochal.layout.pages.reading import load_head, query
from epochal.layout.pages.writes import as_read
from epochal.plan.conditions import Absent
from epochal.plan.ops import Put, Steps


def archive(table: str, into: str, stream: str, before: int) -> Steps[int]:
    """Copy the events below `before` that the archive lacks; the version it has reached.

    Raises:
        InvalidInput: events were pruned before they were archived, or the archive's stream was deleted.
    """
    while True:
        target = yield from load_head(into, stream)
        if target is not None and target.deleted:
            raise InvalidInput("archive", f"takes no more of {stream}, which was deleted there")
        reached = 0 if target is None else target.version
        head = yield from load_head(table, stream)
        if head is None or reached >= min(before, head.version):
            return reached
        page = yield from _holding(table, stream, reached)
        if page is None or page.span.base > reached:
            if version_of((yield from load_head(into, stream))) > reached:
                continue  # another has copied and pruned them meanwhile
            raise _lost(stream, reached, page)
        if page.dictionaries:
            from epochal.layout.pages.dictionaries import bring  # noqa: PLC0415  most stores have none

            yield from bring(table, into, (page,))
        # Where another copier was faster, nothing happens, and what it has done is read.
        yield _copy(into, page, target)


def _holding(table: str, stream: str, index: int) -> Steps[Page | None]:
    reply = yield query(table, stream, 0, index, forward=False, limit=1)
    pages = [read_page(item, table) for item in reply.items]
    return pages[0] if pages and pages[0].version > index else None


def _lost(stream: str, index: int, page: Page | None) -> EpochalError:
    if page is None:
        return CorruptData(f"{stream}: event {index} is in no page, and was not pruned")
    return InvalidInput("before", f"events {index} to {page.span.base - 1} were pruned unarchived")


def _copy(into: str, page: Page, target: Page | None) -> Put:
    """The page with what the archive has of it, if the archive is as it was read. It may have been pruned, too."""
    if target is not None and target.index == page.index:
        frames = (*target.frames, *_from(page, target.version))
        whole = replace(target, version=page.version, frames=frames, full=page.full, stamp=None)
        return Put(table=into, item=write_page(whole), condition=as_read(target))
    whole = Page(
        stream=page.stream, index=page.index, version=page.version, frames=page.frames, full=page.full
    )
    return Put(table=into, item=write_page(whole), condition=Absent("i"))


def _from(page: Page, index: int) -> tuple[Frame, ...]:
    """The page's frames from an index on."""
    at, kept = page.base, list(page.frames)
    while kept and at < index:
        at += kept.pop(0).count
    return tuple(kept)
