"""`content` is an event's data as bytes, for those whose bodies are here; a claim is no content."""

from __future__ import annotations

import os

import pytest

from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent
from epochal.model.events import Event, Unfold
from epochal.testing.stores import memory_streams

LARGE = os.urandom(500_000)


def test_what_was_read_has_its_content_and_what_was_left_in_the_bucket_says_so() -> None:
    streams = memory_streams()
    streams.append("A-1", [Event(type="Small", data=b"{}"), Event(type="Large", data=LARGE)])
    streams.append("A-1", [], unfolds=[Unfold(type="State", data=b"[]")])
    assert [event.content for event in streams.read("A-1")] == [b"{}", LARGE]
    state = streams.load("A-1")
    assert state is not None
    assert state.unfolds[0].content == b"[]"

    small, large = streams.page("A-1", fetch=False).events
    assert small.content == b"{}"
    of_feed = FeedEvent(stream="A-1", index=1, type="Large", data=large.data)
    for event in (Event(type="Large", data=large.data), large, of_feed):
        with pytest.raises(InvalidInput, match="fetch: must be true to read a body in the bucket"):
            _ = event.content
