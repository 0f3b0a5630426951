"""An append of tagged events, and what each of its tags' pages gets of it.

    the first tag of an event   its body, always
    its other tags              the body too; or, where all that a page would get is large, only where it is

A body on a second page costs what it takes there, two write units a KB and storage; a reference costs each reader of
that tag another read. So small ones are copied, which most are, and a tag is read without a second request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from epochal.codec.bodies import EMPTY, Encoded
from epochal.layout.pages.batch import AHEAD, Packed, packed
from epochal.layout.pages.frames import time_of
from epochal.layout.pages.tags.labels import Label, event_id, sortable_id_of
from epochal.layout.pages.tags.site import TagStreams, stream_of
from epochal.layout.stored import EncodedEvent
from epochal.layout.streams import Batch
from epochal.model.dcb import RecordedTaggedEvent, TaggedEvent, is_text
from epochal.model.times import Ticks, format_ticks

REFERRED_FROM: Final = 1_024
"""Bytes of a frame, compressed, from which on its bodies are only referred to where that can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedBatch:
    """One append: all or nothing.

    Attributes:
        events: at least one; an id only where the caller chose it.
        bodies: of each, its data and its metadata as they are stored.
        now: the writer's clock.
        append_id: 16 fresh bytes, and
        etag: 32 fresh hex digits: the same over all tries.
        times: when each happened, where that is not now; a stamp is never below `now`.
    """

    events: tuple[TaggedEvent, ...]
    bodies: tuple[tuple[Encoded, Encoded], ...]
    now: Ticks
    append_id: bytes
    etag: str
    times: tuple[Ticks, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Those that the caller chose."""
        return tuple(event.id for event in self.events if event.id is not None)

    def recorded(self, stamp: bytes) -> tuple[RecordedTaggedEvent, ...]:
        """The events as the append of this stamp stores them."""
        time = time_of(stamp)
        times = self.times or (time if time - self.now <= AHEAD else self.now,) * len(self.events)
        return tuple(
            RecordedTaggedEvent(
                id=event_id(stamp, Label(number=number, id=event.id)),
                sortable_id=sortable_id_of(stamp, number),
                type=event.type,
                data=event.data,
                meta=event.meta,
                tags=tuple(sorted(set(event.tags))),
                timestamp=format_ticks(times[number]),
                causation_id=event.causation_id,
                correlation_id=event.correlation_id,
                executed_user=event.executed_user,
            )
            for number, event in enumerate(self.events)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TagShare:
    """What one tag gets of an append.

    Attributes:
        numbers: of the events that it gets.
        firsts: the first tag of each of them.
        whole: these with their bodies.
    """

    tag: str
    numbers: tuple[int, ...]
    firsts: tuple[str, ...]
    whole: Packed

    def on(self, batch: TaggedBatch, pages: Mapping[str, int]) -> Packed:
        """What is written.

        Args:
            pages: of the first tags' streams, the index of the page that gets the bodies.
        """
        if len(self.whole.content.data) < REFERRED_FROM or set(self.firsts) == {self.tag}:
            return self.whole
        own = zip(self.numbers, self.firsts, strict=True)
        events = [
            _stored(batch, number, self.tag, None if first == self.tag else pages[first])
            for number, first in own
        ]
        return _packed(batch, self.tag, events)


def shares_of(site: TagStreams, batch: TaggedBatch) -> list[TagShare]:
    """What each tag gets, those that have a body only after those whose streams these are in."""
    numbers = dict[str, list[int]]()
    tags = [site.tags_of(event.type, event.tags) for event in batch.events]
    for number, each in enumerate(tags):
        for tag in each:
            numbers.setdefault(tag, []).append(number)
    return [
        TagShare(
            tag=tag,
            numbers=tuple(numbers[tag]),
            firsts=tuple(tags[number][0] for number in numbers[tag]),
            whole=_packed(batch, tag, [_stored(batch, number, tag, None) for number in numbers[tag]]),
        )
        for tag in sorted(numbers, key=lambda tag: (tag.startswith("$"), tag))
    ]


def _packed(batch: TaggedBatch, tag: str, events: Sequence[EncodedEvent]) -> Packed:
    found = packed(
        Batch(
            stream=stream_of(tag),
            events=tuple(events),
            etag=batch.etag,
            append_id=batch.append_id,
            now=batch.now,
        )
    )
    return replace(found, dated=bool(batch.times))


def _stored(batch: TaggedBatch, number: int, tag: str, page: int | None) -> EncodedEvent:
    event, (data, meta) = batch.events[number], batch.bodies[number]
    here = page is None
    label = Label(
        number=number,
        others=tuple(sorted(set(event.tags) - {tag})),
        id=event.id,
        user=event.executed_user,
        page=page,
        meta=meta if here else EMPTY,
        data_text=here and is_text(event.data),
        meta_text=here and is_text(event.meta),
    )
    return EncodedEvent(
        type=event.type,
        data=data if here else EMPTY,
        meta=label.encoded(),
        timestamp=format_ticks(batch.times[number] if batch.times else batch.now),
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
    )
