"""A tagged event as the feed shows it, whichever tables it is in."""

from __future__ import annotations

from epochal.feed.results import FeedEvent
from epochal.model.dcb import RecordedTaggedEvent, TaggedBody, Unfetched, bytes_of
from epochal.model.events import Body


def of_tag(stream: str, index: int, event: RecordedTaggedEvent) -> FeedEvent:
    """A tagged event, as event `index` of the stream of one of its tags."""
    return FeedEvent(
        stream=stream,
        index=index,
        type=event.type,
        data=_body(event.data),
        meta=_body(event.meta),
        timestamp=event.timestamp,
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        tags=event.tags,
        id=event.id,
        user=event.executed_user,
    )


def _body(body: TaggedBody) -> Body:
    return body.claim if isinstance(body, Unfetched) else bytes_of(body)
