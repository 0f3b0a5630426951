"""Events of the streams that a deployment stores as pages, those of tags among them.

Their store is opened when events are first asked for: a function starts up without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from epochal.feed.histories.streams import StreamHistory
from epochal.feed.history import Hydrate
from epochal.feed.results import FeedEvent
from epochal.model.names import TAG_STREAMS
from epochal.settings import Settings
from epochal.store.driver import Driver
from epochal.store.encoding import BodyCodec
from epochal.store.streams import streams_of


@dataclass(frozen=True, slots=True)
class PageHistory:
    """Events of streams as pages."""

    settings: Settings
    driver: Driver
    codec: BodyCodec
    name: ClassVar[str] = "pages"

    def on(self, driver: Driver) -> PageHistory:
        """The same, through another driver."""
        return replace(self, driver=driver)

    def events(self, *, fetch: bool = True) -> Hydrate:
        """Reads events of streams."""
        named = self._opened().events(fetch=fetch)

        def hydrate(stream: str, first: int, end: int) -> Iterator[FeedEvent]:
            if not stream.startswith(TAG_STREAMS):
                return named(stream, first, end)
            from epochal.feed.histories.tags import events_of_tag  # noqa: PLC0415  who has no tags does without

            return events_of_tag(self.settings, self.driver, self.codec, (stream, first, end), fetch=fetch)

        return hydrate

    def end_of(self, stream: str, since: int) -> int:
        """The next index of a stream."""
        return self._opened().end_of(stream, since)

    def _opened(self) -> StreamHistory:
        return StreamHistory(streams_of(self.settings, self.driver, self.codec))


def open_history(settings: Settings, driver: Driver, codec: BodyCodec) -> PageHistory:
    """The streams of a deployment."""
    return PageHistory(settings, driver, codec)
