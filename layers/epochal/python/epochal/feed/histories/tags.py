"""Events of tags that are streams of pages: each with all of its tags, in the stream of each."""

from __future__ import annotations

from collections.abc import Iterator

from epochal.errors import CorruptData
from epochal.feed.histories.tagged import of_tag
from epochal.feed.history import faulty
from epochal.feed.results import FeedEvent
from epochal.model.names import TAG_STREAMS
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.tagged import TaggedEvents, tagged_of


def events_of_tag(
    settings: Settings, driver: Driver, codec: BodyCodec, span: tuple[str, int, int], *, fetch: bool
) -> Iterator[FeedEvent]:
    """The events of a tag's stream from an index up to and without another."""
    store, (stream, first, end) = tagged_of(settings, driver, codec), span
    yield from _read(store, stream, first, end, fetch=fetch)


def _read(store: TaggedEvents, stream: str, first: int, end: int, *, fetch: bool) -> Iterator[FeedEvent]:
    """Where one of them is broken, those of either half."""
    try:
        found = store.between(stream.removeprefix(TAG_STREAMS), first, end, fetch=fetch)
    except CorruptData as fault:
        if end - first == 1:
            yield from faulty(stream, first, end, fault)
            return
        half = (first + end) // 2
        yield from _read(store, stream, first, half, fetch=fetch)
        yield from _read(store, stream, half, end, fetch=fetch)
        return
    for index, event in enumerate(found, first):
        yield of_tag(stream, index, event)
