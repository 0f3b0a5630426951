"""Events of the streams that a deployment stores as pages, those of tags among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from epochal.errors import CorruptData, DeniedBody, MissingBody
from epochal.feed.history import DeployedHistory, Hydrate, StreamHistory, of_tag, together
from epochal.feed.results import FeedEvent
from epochal.model.events import TAG_STREAMS, Recorded
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams


@dataclass(frozen=True)
class PageHistory(DeployedHistory):
    """Events of streams as pages."""

    def events(self, *, fetch: bool = True) -> Hydrate:
        """Reads events of streams."""
        named = DeployedHistory.events(self, fetch=fetch)

        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
            if not stream.startswith(TAG_STREAMS):
                return named(stream, first, end)
            return events_of_tag(self.settings, self.driver, self.codec, (stream, first, end), fetch=fetch)

        return hydrate


def open_history(settings: Settings, driver: Driver, codec: BodyCodec) -> PageHistory:
    """The streams of a deployment."""
    return PageHistory("pages", "epochal.store.streams:streams_of", settings, driver, codec)


def history_of(store: object) -> StreamHistory | None:
    """The history of a store of streams, however they are stored; None of any other store."""
    return StreamHistory(store) if isinstance(store, Streams) else None


def events_of_tag(
    settings: Settings, driver: Driver, codec: BodyCodec, span: tuple[str, int, int], *, fetch: bool
) -> Iterator[FeedEvent]:
    """The events of a tag's stream from an index up to and without another."""
    from epochal.store.tagged import tagged_of  # noqa: PLC0415  who has no tags does without

    store, (stream, first, end) = tagged_of(settings, driver, codec), span

    def read(start: int, until: int) -> Iterator[FeedEvent]:
        found = store.between(stream.removeprefix(TAG_STREAMS), start, until, fetch=False)
        return (shown(index, event) for index, event in enumerate(found, start))

    def shown(index: int, event: Recorded) -> FeedEvent:
        """An event with its body; without it, all that is known of the event."""
        try:
            return of_tag(stream, index, store.whole((event,))[0] if fetch else event)
        except (CorruptData, MissingBody, DeniedBody) as fault:
            return replace(of_tag(stream, index, event), fault=fault)

    return together(stream, first, end, read)
