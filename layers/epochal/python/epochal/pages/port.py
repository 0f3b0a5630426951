"""What the feed reads from pages: the events that the latest write to a page appended or removed.

To the feed, every page is a head: its image contains its index, its version and its frames, so no further read is
needed. A stream has as many heads as pages, each with events of its own. A full page does not tell whether another
follows.

The frames of one write have stamps one tick apart. The frames of two writes may have, too, if a writer's clock is
behind the stream. Then a head repeats events of an earlier image, which the index drops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from epochal.codec.bodies import DIRECT, Encoded
from epochal.errors import CorruptData
from epochal.layout.categories import CategoriesBy
from epochal.layout.changes import Change, Span
from epochal.layout.healing import Heal, heal_streams
from epochal.layout.port import Archive, Permission, Port
from epochal.layout.source import End, Source
from epochal.layout.stored_items import StoredAppend, StoredItem
from epochal.layout.streams import IDENTIFIED
from epochal.lazy_dataclasses import replace
from epochal.model.moments import Ticks, format_ticks
from epochal.model.stream_names import EVENT_IDS, SEALS, TAG_STREAMS, category_of
from epochal.model.tags import group_of
from epochal.pages.frames import stamp_in, time_of
from epochal.pages.items import (
    ARCHIVE,
    STREAMS,
    Page,
    PageSpan,
    frames_size,
    is_page,
    read_page,
    unfolds_size,
    write_frames,
)
from epochal.pages.reading import advance, begin_read, query
from epochal.pages.tags.entries import read_label
from epochal.plan.conditions import Condition, Present
from epochal.plan.ops import Steps
from epochal.plan.values import AttributeValue, Item, write_units
from epochal.settings import Options, Settings, variable

if TYPE_CHECKING:
    from epochal.layout.changes import RemovalKind


def pages_source(table: str, partitions: int = 1) -> Source:
    """Make the feed's source of a table of pages, with the given number of partitions of the feed."""
    return Source(
        name="pages",
        table=table,
        partitions=partitions,
        setting=variable("pages_partitions"),
        appended=appended,
        heal=heal_pages(table),
        end=end,
        change_up_to=stored,
        where=WHERE,
        moved=None,  # only the absence of `w` tells an append, which a filter cannot test
        stored=stored,
        aged=aged,
        written=written,
        append_id=append_id,
        numbers=numbers,
    )


def heal_pages(table: str) -> Heal:
    """Make the function that reads events missing from the feed from the pages of their streams."""
    return heal_streams("pages", partial(begin_read, table), partial(advance, table), _writes)


def _source(settings: Settings) -> Source:
    return pages_source(settings.table(STREAMS.kind), settings.partitions("pages_partitions"))


def _kind_of(item: Item) -> str | None:
    return STREAMS.kind if is_page(item) or _is_aside(item) else None


def _is_aside(item: Item) -> bool:
    """Whether an item is the record of an event id or the key that seals tokens."""
    return item.keys() >= set(STREAMS.keys) and item["p"].get("S", "").startswith((EVENT_IDS, SEALS))


def _access(options: Options) -> Mapping[str, tuple[Permission, ...]]:
    """Return the permissions on the table of pages that each function of a deployment needs.

    Streams are read by queries, and written by puts and updates of pages. Single items are read to learn whether a
    transaction was applied, for records of event ids, and for bodies of tagged events on the pages of other tags. A
    scan lists the tags.
    """
    reading = ("Query", "GetItem", "BatchGetItem")
    actions = {
        "append": (*reading, "PutItem", "UpdateItem", "ConditionCheckItem"),
        # Its appends check no page that they do not also write.
        "timers": (*reading, "PutItem", "UpdateItem"),
        "replay": (*reading, "Scan"),
        "feed": reading,
        "indexer": ("Query",),
        "auditor": ("GetItem", "Query", "Scan"),
        "reaction": reading,
    }
    permissions = {
        function: (Permission(table=STREAMS, actions=allowed),) for function, allowed in actions.items()
    }
    pruned = (Permission(table=STREAMS, actions=("UpdateItem",)),) if options.keep else ()
    return {**permissions, "auditor": (*permissions["auditor"], *pruned)}


def _category_of(stream: str) -> str:
    """Return the category of a stream; that of a tag's stream has a prefix that no other category has."""
    tag = stream.removeprefix(TAG_STREAMS)
    return category_of(stream) if tag == stream else f"{TAG_STREAMS}{group_of(tag)}"


WHERE: Condition = Present("r", "N")
"""Condition that pages meet and records of idempotency keys do not."""


def appended(item: Item) -> Change | None:
    """Describe what an item's latest write appended (stream, indices, types) or removed; None for neither.

    None for records, and for other writes without events.

    Raises:
        CorruptData: the item has the attributes of a page, and contradicts itself.
    """
    page = _page_of(item)
    if page is None or page.stamp is not None:
        return _end(page).removal if page is not None and page.removing else None
    return _span(page.span.since(page.version - _latest(page)))


def _latest(page: Page) -> int:
    """Count the events that the latest write to a page appended: those of the last stamps one tick apart."""
    *earlier, last = page.frames
    count, time = last.count, time_of(last.stamp)
    for frame in reversed(earlier):
        time = Ticks(time - 1)
        if time_of(frame.stamp) != time:
            break
        count += frame.count
    return count


def end(item: Item) -> End | None:
    """Return the end of a page's events; None for a record. Raise `CorruptData` as `appended` does."""
    page = _page_of(item)
    return None if page is None else _end(page)


def _end(page: Page) -> End:
    """Return the end of a page's events, up to where they are pruned, and how (pruned, deleted, emptied).

    Only an open page without events and unfolds says that the stream is emptied, since an open page is the last.
    """
    pruned = max(page.low_water, page.base if page.base > page.index else 0)
    kind: RemovalKind = "deleted" if page.deleted else "pruned"
    if not page.full and not page.unfolds and 0 < page.version <= pruned:
        kind = "emptied"
    return End(page.stream, page.version, pruned, since=page.index, left=kind)


def stored(item: Item) -> Span | None:
    """Return stream, first index and types of a page's events that are not pruned; None if there are none.

    Raises:
        CorruptData: the page contradicts itself, or a frame is malformed.
    """
    page = _page_of(item)
    return None if page is None else _span(page.span)


def written(item: Item) -> Ticks | None:
    """Return the time of a page's last append; None without frames. Raise `CorruptData` if malformed."""
    page = _page_of(item)
    return time_of(page.frames[-1].stamp) if page is not None and page.frames else None


def append_id(item: Item) -> bytes | None:
    """Return the stamp of a page's latest append; None if its latest write added no events."""
    frames: Sequence[AttributeValue] = () if "w" in item else item["f"]["L"]
    return stamp_in(frames[-1]["B"]) if frames else None


def numbers(item: Item) -> Sequence[int] | None:
    """Return the number of each of a page's latest events within its append; None where no label tells.

    An append's events in a named stream, not all of which need have labels, have consecutive numbers.
    """
    page = read_page(item)
    if page.stamp is not None or not page.frames or _latest(page) != page.frames[-1].count:
        return None
    try:
        events = page.read_frame(len(page.frames) - 1)
        if page.stream.startswith(TAG_STREAMS):
            return [read_label(event.meta).number for event in events]
        for place, event in enumerate(events):
            if event.label and not event.label.startswith(IDENTIFIED):
                first = read_label(Encoded(DIRECT, event.label)).number - place
                return range(first, first + len(events))
    except CorruptData:
        return None
    return None


def aged(item: Item, moment: Ticks) -> int:
    """Return the index below which a page's events are older than a moment; 0 if none is.

    Raises:
        CorruptData: the page contradicts itself.
    """
    page = _page_of(item)
    older = 0
    for frame in () if page is None else page.frames:
        if time_of(frame.stamp) >= moment:
            break
        older += frame.count
    return page.base + older if page is not None and older else 0


def _writes(span: PageSpan) -> Iterator[tuple[int, int, Ticks]]:
    """Yield for each append in a span its first index, the index after its last event, and its time."""
    index = span.page.base
    for frame in span.page.frames:
        first, index = max(index, span.base), index + frame.count
        if first < min(index, span.next):
            yield first, min(index, span.next), time_of(frame.stamp)


def _page_of(item: Item) -> Page | None:
    return read_page(item) if is_page(item) else None


def _span(span: PageSpan) -> Span | None:
    return Span(span.page.stream, span.base, tuple(span.types)) if span.base < span.next else None


def stored_items(table: str, stream: str, first: int, end: int) -> Steps[tuple[StoredItem, ...]]:
    """Read the pages with events `first` to `end - 1`, in at most two queries; return a summary of each.

    Raises:
        CorruptData: a page contradicts itself.
    """
    reply = yield query(table, stream, 0, first, forward=False, limit=1)
    items = reply.items
    if end > first + 1:
        more = yield query(table, stream, first + 1, end - 1)
        items += more.items
    return tuple(_shown(read_page(item, table)) for item in items)


def _shown(page: Page) -> StoredItem:
    """Return a summary of a page: first index, version, sizes, whether it is full, and its appends."""
    return StoredItem(
        index=page.index,
        end=page.version,
        bytes=page.size,
        unfolds=unfolds_size(page.unfolds),
        full=page.full,
        appends=tuple(_appends(page)),
    )


def _appends(page: Page) -> Iterator[StoredAppend]:
    """Yield the appends that a page holds, each with its write units as computed from the page's size.

    The cost is computed from the size of the page after the append: with the frames up to its own, and for the latest
    append the whole page.
    """
    index = page.base
    least = bool(page.unfolds) or page.stamp is not None or page.base > page.index
    bare = replace(page, unfolds=b"", stamp=None, full=False, deleted=False)
    for position, frame in enumerate(page.frames, 1):
        last = position == len(page.frames)
        after = page if last else replace(bare, frames=page.frames[:position], version=index + frame.count)
        yield StoredAppend(
            index=index,
            events=frame.count,
            bytes=frames_size(write_frames((frame,))),
            units=write_units(after.size),
            least=least,
            timestamp=format_ticks(time_of(frame.stamp)),
        )
        index += frame.count


PORT: Final = Port(
    tables=(STREAMS,),
    kind_of=_kind_of,
    access=_access,
    heads=STREAMS,
    source=_source,
    categories=CategoriesBy(_category_of),
    stored_items=stored_items,
    # The last page of a stream is found by a query.
    archive=Archive(table=ARCHIVE, copying=("Query", "PutItem"), reading=("Query",)),
)
