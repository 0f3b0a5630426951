"""A tagged event as the feed shows it, whichever tables it is in."""

from __future__ import annotations

from epochal.feed.results import FeedEvent
from epochal.model.events import Recorded


def of_tag(stream: str, index: int, event: Recorded, user: str | None = None) -> FeedEvent:
    """A tagged event, as event `index` of the stream of one of its tags."""
    return FeedEvent(
        stream=stream,
        index=index,
        type=event.type,
        data=event.data,
        meta=event.meta,
        timestamp=event.timestamp,
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        tags=event.tags,
        id=event.id,
        home=event.stream,
        user=user,
    )
