"""Reading opens the compressed bodies that it returns, and no others: megabytes of spaces are stored in a few bytes."""

from __future__ import annotations

import pytest

from epochal.codec.bodies import Encoded, decode
from epochal.errors import TooLarge
from epochal.model.events import Claim, Event
from epochal.store import encoding
from epochal.store.reading import Direction
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams
from tests.support.api import Api

STREAM = "Order-1"
LARGE = Event(type="Placed", data=b" " * 1_500_000 + b"1")
ALL = 12


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the bodies that were opened."""
    sizes: list[int] = []

    def counted(body: Encoded) -> bytes | Claim:
        content = decode(body)
        sizes.append(len(content) if isinstance(content, bytes) else 0)
        return content

    monkeypatch.setattr(encoding, "decode", counted)
    return sizes


@pytest.fixture
def streams() -> Streams:
    streams = memory_streams()
    for _ in range(ALL):
        streams.append(STREAM, [LARGE])
    return streams


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_page_opens_what_it_has_room_for_and_one_more(
    streams: Streams, opened: list[int], direction: Direction
) -> None:
    page = streams.page(STREAM, max_bytes=1_000_000, direction=direction)
    assert [len(event.content) for event in page.events] == [len(LARGE.content)]
    assert len(opened) == 2


def test_a_read_that_ends_early_opens_what_it_returned(streams: Streams, opened: list[int]) -> None:
    events = streams.read(STREAM)
    assert next(events).index == 0
    assert len(opened) == 1
    assert [event.index for event in events] == [*range(1, ALL)]


def test_events_of_one_append_are_opened_one_by_one_too(opened: list[int]) -> None:
    streams = memory_streams()
    streams.append(STREAM, [LARGE] * ALL)
    assert len(streams.page(STREAM, max_bytes=1).events) == 1
    assert len(opened) == 2


def test_small_bodies_are_opened_together(opened: list[int]) -> None:
    streams = memory_streams()
    streams.append(STREAM, [Event(type="Placed", data=b" " * 30_000)] * 16)
    assert len(streams.page(STREAM, max_bytes=1).events) == 1
    assert len(opened) == 16


def test_the_state_of_a_stream_opens_no_event_over_http_unless_asked(opened: list[int]) -> None:
    api = Api()
    for _ in range(ALL):
        api.streams.append(STREAM, [LARGE])
    state = api.call("GET", f"/streams/{STREAM}")
    assert (state.status, state.json["version"], state.json["headEvents"]) == (200, ALL, ALL)
    assert opened == []


def test_a_body_that_nobody_could_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MAX_DECODED", 1_000)
    streams = memory_streams()
    with pytest.raises(TooLarge, match=r"events\[0\]\.data: 1,001 bytes, at most 1,000"):
        streams.append(STREAM, [Event(type="Placed", data=b"x" * 1_001)])
    assert streams.load(STREAM) is None
    streams.append(STREAM, [Event(type="Placed", data=b"x" * 1_000)])
