"""The tagged events of one append, and the share of them that the stream of each tag gets.

The pages of an event's tags store its body as follows:

    the first tag of an event   the body
    its other tags              a copy of the body; or, if the page would get much, a reference to the first tag's page

A copy costs two write units per KB, and storage; a reference costs each reader of that tag another read. So small
bodies, which most are, are copied, and a tag is read without a second request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from epochal.codec.bodies import EMPTY
from epochal.layout.streams import Batch, EncodedEvent
from epochal.layout.tag_streams import TagStreams
from epochal.layout.tagged_batch import TaggedBatch
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Recorded
from epochal.model.moments import format_ticks
from epochal.pages.batch import AHEAD, Packed, packed
from epochal.pages.frames import time_of
from epochal.pages.tags.entries import Label, event_id, stamped_place, stream_of

REFERRED_FROM: Final = 1_024
"""Bytes of a compressed frame from which a tag stores references to bodies on other tags' pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TagShare:
    """The part of an append that the stream of one tag gets.

    Attributes:
        tag: the tag.
        numbers: numbers of its events within the append.
        firsts: first tag of each of these events, whose page has the body.
        whole: batch of these events with all bodies; None if they have homes, whose indices are not known yet.
    """

    tag: str
    numbers: tuple[int, ...]
    firsts: tuple[str, ...]
    whole: Packed | None

    def on(self, batch: TaggedBatch, pages: Mapping[str, int], homes: Mapping[str, int]) -> Packed:
        """Return the batch for the tag's stream, with references instead of bodies if it is large.

        Args:
            pages: by first tag, the index of the page that gets the bodies.
            homes: by named stream, the index of the first event that it gets.
        """
        complete = self.whole or _whole(batch, self.tag, self.numbers, homes)
        if len(complete.content.data) < REFERRED_FROM or set(self.firsts) == {self.tag}:
            return complete
        own = zip(self.numbers, self.firsts, strict=True)
        events = [
            _stored(batch, number, self.tag, None if first == self.tag else pages[first], homes)
            for number, first in own
        ]
        return _packed(batch, self.tag, events)


def shares_of(site: TagStreams, batch: TaggedBatch) -> list[TagShare]:
    """Split a batch into the parts of its tags; parts that others refer to for bodies come first."""
    numbers = dict[str, list[int]]()
    tags = [
        site.tags_of(event.type, event.tags) if event.tags or not batch.homes else ()
        for event in batch.events
    ]
    for number, own_tags in enumerate(tags):
        for tag in own_tags:
            numbers.setdefault(tag, []).append(number)
    return [
        TagShare(
            tag=tag,
            numbers=tuple(numbers[tag]),
            firsts=tuple(tags[number][0] for number in numbers[tag]),
            whole=None if batch.homes else _whole(batch, tag, numbers[tag], {}),
        )
        for tag in sorted(numbers, key=lambda tag: (tag.startswith("$"), tag))
    ]


def recorded_events(tagged: TaggedBatch, stamp: bytes) -> tuple[Recorded, ...]:
    """Return the events of a batch as an append with this stamp stores them."""
    time = time_of(stamp)
    moment = format_ticks(time if time - tagged.now <= (0 if tagged.dated else AHEAD) else tagged.now)
    return tuple(
        Recorded(
            id=event_id(stamp, Label(number=number, id=event.id)),
            place=stamped_place(stamp, number),
            type=event.type,
            data=event.data,
            meta=event.meta,
            tags=tuple(sorted(set(event.tags))),
            timestamp=event.timestamp or moment,
            causation_id=event.causation_id,
            correlation_id=event.correlation_id,
        )
        for number, event in enumerate(tagged.events)
    )


def _whole(batch: TaggedBatch, tag: str, numbers: Sequence[int], homes: Mapping[str, int]) -> Packed:
    return _packed(batch, tag, [_stored(batch, number, tag, None, homes) for number in numbers])


def _packed(batch: TaggedBatch, tag: str, events: Sequence[EncodedEvent]) -> Packed:
    """Encode events as the batch for a tag's stream, with etag, id and clock of the tagged batch."""
    return packed(
        Batch(
            stream=stream_of(tag),
            events=tuple(events),
            etag=batch.etag,
            append_id=batch.append_id,
            now=batch.now,
            dated=batch.dated,
        )
    )


def _stored(
    batch: TaggedBatch, number: int, tag: str, page: int | None, homes: Mapping[str, int]
) -> EncodedEvent:
    """Encode an event for a tag's stream, without its bodies if the page with index `page` has them."""
    event, (data, meta) = batch.events[number], batch.bodies[number]
    is_new, home = page is None, batch.homes[number] if batch.homes else None
    label = Label(
        number=number,
        others=tuple(sorted(set(event.tags) - {tag})),
        id=event.id,
        page=page,
        home=None if home is None else (home[0], homes[home[0]] + home[1]),
        meta=meta if is_new else EMPTY,
    )
    return EncodedEvent(
        type=event.type,
        data=data if is_new else EMPTY,
        meta=label.encoded(),
        timestamp=event.timestamp or format_ticks(batch.now),
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
    )
