"""Events of tags' pages, and where the bodies are that a page only refers to.

The body of an event is on the page of its first tag; the pages of its other tags may say where. Both were written at
once, but a read may find one of them before the other: a body that is not there is asked for again, once no append to
its page is under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from epochal.codec.bodies import Encoded, decode
from epochal.errors import CorruptData
from epochal.layout.pages.items import Page, page_key, read_page
from epochal.layout.pages.spans import PageSpan
from epochal.layout.pages.tags.labels import Label, event_id, read_label, sortable_id_of
from epochal.layout.pages.tags.site import TagStreams, stream_of
from epochal.layout.stored import EncodedEvent
from epochal.model.dcb import (
    UNTAGGED,
    Reached,
    RecordedTaggedEvent,
    SortableId,
    TaggedBody,
    Trail,
    Unfetched,
    as_given,
    is_reserved,
)
from epochal.model.events import Claim
from epochal.model.names import TAG_STREAMS
from epochal.plan.batches import get_all, settled
from epochal.plan.ops import Steps
from epochal.plan.values import Key


# No slots: what is derived once is kept.
@dataclass(frozen=True, kw_only=True)
class EventOfTag:
    """An event in a tag's stream.

    Attributes:
        tag: whose stream it is.
        stamp: of the append.
    """

    tag: str
    index: int
    stamp: bytes
    event: EncodedEvent

    @property
    def type(self) -> str:
        """What happened."""
        return self.event.type

    @cached_property
    def label(self) -> Label:
        """What it says of itself."""
        return read_label(self.event.meta)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """All that it carries, in order."""
        own = () if is_reserved(self.tag) else (self.tag,)
        return tuple(sorted((*self.label.others, *own)))

    @cached_property
    def sortable_id(self) -> SortableId:
        """Its place among events."""
        return sortable_id_of(self.stamp, self.label.number)

    @cached_property
    def id(self) -> str:
        """Its id."""
        return event_id(self.stamp, self.label)

    @property
    def key(self) -> str:
        """As of a recorded event."""
        return f"{self.sortable_id}#{self.id}"

    @property
    def reached(self) -> Reached:
        """How far a tag has been read with this event."""
        return Reached(self.index + 1, self.sortable_id)

    @property
    def body(self) -> tuple[Key, bytes, int] | None:
        """Where its body is, if it is not here: the page, the append, the number."""
        if self.label.page is None:
            return None
        first = self.tags[0] if self.tags else UNTAGGED
        return page_key(stream_of(first), self.label.page), self.stamp, self.label.number


def entries_of(span: PageSpan) -> Iterator[EventOfTag]:
    """The events of a span of a tag's page."""
    page, at = span.page, span.page.base
    for position, frame in enumerate(page.frames):
        if at < span.next and at + frame.count > span.base:
            yield from (each for each in _of_frame(page, position, at) if span.base <= each.index < span.next)
        at += frame.count


def last_entry(page: Page) -> EventOfTag:
    """The last event of a tag's page. Raises `CorruptData` where it has none."""
    if not page.frames:
        raise CorruptData(f"{page.stream}: page {page.index} has no events, which no tag's page lacks")
    event = page.read_frame(len(page.frames) - 1)[-1]
    tag = page.stream.removeprefix(TAG_STREAMS)
    return EventOfTag(tag=tag, index=page.version - 1, stamp=page.frames[-1].stamp, event=event)


def reached_by(page: Page | None) -> Reached:
    """How far a tag has got whose last page this is; None: it has none."""
    if page is None:
        return Reached()
    reached = last_entry(page).reached
    return Reached(reached.count, reached.last, page.token())


def recorded_all(site: TagStreams, entries: Sequence[EventOfTag]) -> Steps[list[RecordedTaggedEvent]]:
    """The events with their bodies, in the order of the entries.

    Raises:
        CorruptData: a body is not where it must be.
    """
    places = [place for entry in entries if (place := entry.body) is not None]
    bodies = (yield from _bodies(site, places)) if places else {}
    return [_recorded(entry, entry if entry.body is None else bodies[entry.id]) for entry in entries]


def placed(event: RecordedTaggedEvent, entry: EventOfTag) -> RecordedTaggedEvent:
    """An event with the position that its entry tells: its place in one tag."""
    return replace(event, trail=Trail.in_tags({entry.tag: entry.index + 1}, event.sortable_id))


def _bodies(site: TagStreams, places: Sequence[tuple[Key, bytes, int]]) -> Steps[dict[str, EventOfTag]]:
    """The entries that hold the bodies, by the ids of their events."""
    keys = {_name(key): key for key, _, _ in places}
    items = yield from get_all(site.table, keys.values())
    found = _held([read_page(item, site.table) for item in items], places)
    late = {_name(key): key for key, stamp, number in places if (stamp, number) not in found}
    for read in settled((site.table, key) for key in late.values()):
        reply = yield read
        found |= _held([read_page(item, site.table) for item in reply.items if item is not None], places)
    for key, stamp, number in places:
        if (stamp, number) not in found:
            raise CorruptData(
                f"{key['p']['S']}: page {key['i']['N']} has no body of event {number} of an append"
            )
    return {entry.id: entry for entry in found.values()}


def _held(
    pages: Sequence[Page], places: Sequence[tuple[Key, bytes, int]]
) -> dict[tuple[bytes, int], EventOfTag]:
    wanted = {(stamp, number) for _, stamp, number in places}
    stamps = {stamp for stamp, _ in wanted}
    return {
        (frame.stamp, entry.label.number): entry
        for page in pages
        for position, frame in enumerate(page.frames)
        if frame.stamp in stamps
        for entry in _of_frame(page, position)
        if (frame.stamp, entry.label.number) in wanted and entry.label.page is None
    }


def _of_frame(page: Page, position: int, first: int = 0) -> Iterator[EventOfTag]:
    tag, stamp = page.stream.removeprefix(TAG_STREAMS), page.frames[position].stamp
    for index, event in enumerate(page.read_frame(position), first):
        yield EventOfTag(tag=tag, index=index, stamp=stamp, event=event)


def _name(key: Key) -> str:
    return f"{key['p']['S']}\0{key['i']['N']}"


def _recorded(entry: EventOfTag, holder: EventOfTag) -> RecordedTaggedEvent:
    label = holder.label
    return RecordedTaggedEvent(
        id=entry.id,
        sortable_id=entry.sortable_id,
        type=entry.type,
        data=body_of(holder.event.data, text=label.data_text),
        meta=body_of(label.meta, text=label.meta_text),
        tags=entry.tags,
        timestamp=entry.event.timestamp,
        causation_id=entry.event.causation_id,
        correlation_id=entry.event.correlation_id,
        executed_user=label.user,
    )


def body_of(encoded: Encoded, *, text: bool) -> TaggedBody:
    """A body as its writer gave it; what is in the bucket is left there (`Unfetched`)."""
    body = decode(encoded)
    return Unfetched.of(body, text=text) if isinstance(body, Claim) else as_given(body, text=text)
