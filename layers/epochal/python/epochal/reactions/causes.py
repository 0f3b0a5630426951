"""What a reaction appends says what caused it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from epochal.feed.results import FeedEvent, name_of
from epochal.store.context import metadata


def caused_by(*events: FeedEvent) -> AbstractContextManager[None]:
    """A block whose appends carry the events' conversation and, where there is one event, name it as their cause.

    An event is named by its `id` or, in streams, by its place: `Flight-UA1545@3`. One that belongs to no conversation
    begins one. Several events have a conversation where it is one, and no single cause.
    """
    conversations = {each.correlation_id or name_of(each) for each in events}
    return metadata(
        correlation_id=conversations.pop() if len(conversations) == 1 else None,
        causation_id=name_of(events[0]) if len(events) == 1 else None,
    )
