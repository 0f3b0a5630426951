"""Reading opens the compressed bodies that it returns, and no others: megabytes of spaces are stored in a few bytes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest

from epochal.codec.bodies import Encoded, decode, unbrotli
from epochal.contrib.equinox import memory_tips
from epochal.errors import CorruptData, TooLarge
from epochal.model.bodies import Claim
from epochal.model.events import Event, Unfold
from epochal.pages import frames
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

    def counted(body: Encoded, limit: int) -> bytes | Claim:
        content = decode(body, limit)
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
def test_a_page_opens_what_it_has_room_for_and_no_more(
    streams: Streams, opened: list[int], direction: Direction
) -> None:
    page = streams.page(STREAM, max_bytes=1_000_000, direction=direction)
    assert [len(event.content) for event in page.events] == [len(LARGE.content)]
    assert len(opened) == 1


def test_a_read_that_ends_early_opens_what_it_returned(streams: Streams, opened: list[int]) -> None:
    events = streams.read(STREAM)
    assert next(events).index == 0
    assert len(opened) == 1
    assert [event.index for event in events] == [*range(1, ALL)]


def test_events_of_one_append_are_opened_one_by_one_too(opened: list[int]) -> None:
    streams = memory_streams()
    streams.append(STREAM, [LARGE] * ALL)
    assert len(streams.page(STREAM, max_bytes=1).events) == 1
    assert len(opened) == 1


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


SPACES = b" " * 60_000_000


@pytest.mark.parametrize("opened_store", [memory_tips, memory_streams])
def test_what_a_head_may_inflate_to_is_bounded_and_its_events_can_be_read_one_by_one(
    opened_store: Callable[[], Streams], opened: list[int]
) -> None:
    streams = opened_store()
    for _ in range(5):
        streams.append(STREAM, [Event(type="Placed", data=SPACES)])
    opened.clear()
    with pytest.raises(
        CorruptData,
        match=r"^Order-1: the bodies of events 0 to 4 exceed 256 MB in all when decompressed: `read` opens one at",
    ):
        streams.load(STREAM)
    assert sum(opened) <= 256 * 1024 * 1024
    assert [len(event.content) for event in streams.read(STREAM)] == [len(SPACES)] * 5


def test_what_the_unfolds_of_a_head_may_inflate_to_is_bounded(opened: list[int]) -> None:
    streams = memory_tips()
    streams.append(STREAM, [], unfolds=[Unfold(type=f"U{n}", data=SPACES) for n in range(5)])
    opened.clear()
    with pytest.raises(CorruptData, match=r"the bodies of unfolds exceed 256 MB in all when decompressed"):
        streams.load(STREAM)
    assert sum(opened) <= 256 * 1024 * 1024


@pytest.fixture
def frames_opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the contents of frames that were opened whole."""
    sizes: list[int] = []

    def counted(data: bytes, limit: int) -> bytes:
        content = unbrotli(data, limit)
        sizes.append(len(content))
        return content

    monkeypatch.setattr(frames, "unbrotli", counted)
    return sizes


def streams_of_frames(monkeypatch: pytest.MonkeyPatch, events: list[Event]) -> Streams:
    """Appends whose bodies are compressed together, whatever their size, as a writer of its own may leave them."""
    monkeypatch.setattr(encoding, "overflowing", lambda *_: ())
    streams = memory_streams()
    writer = replace(streams, codec=replace(streams.codec, compress=False))
    for _ in range(ALL):
        writer.append(STREAM, events)
    return streams


def test_large_frames_are_opened_one_by_one(
    monkeypatch: pytest.MonkeyPatch, frames_opened: list[int]
) -> None:
    found = streams_of_frames(monkeypatch, [LARGE]).read(STREAM)
    assert next(found).content == LARGE.content
    assert len(frames_opened) == 1
    assert [event.index for event in found] == [*range(1, ALL)]
    assert len(frames_opened) == ALL


def test_a_read_keeps_no_large_frame_that_it_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [Event(type="Placed", data=b" " * 60_000)] * 20
    streams = streams_of_frames(monkeypatch, events)
    tracemalloc.start()
    try:
        assert sum(1 for _ in streams.read(STREAM)) == ALL * len(events)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < ALL * len(events) * 60_000 / 2


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_page_opens_the_frames_that_it_has_room_for_and_no_more(
    monkeypatch: pytest.MonkeyPatch, frames_opened: list[int], direction: Direction
) -> None:
    streams = streams_of_frames(monkeypatch, [LARGE])
    assert len(streams.page(STREAM, max_bytes=1_000_000, direction=direction).events) == 1
    assert len(frames_opened) == 1


def test_small_events_beside_a_large_one_are_read_in_order() -> None:
    streams = memory_streams()
    small = Event(type="Placed", data=b" " * 30_000)
    streams.append(STREAM, [small, small, LARGE, small, LARGE, small])
    assert [event.index for event in streams.read(STREAM)] == [0, 1, 2, 3, 4, 5]
    backward = streams.read(STREAM, direction="backward")
    assert [event.index for event in backward] == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("before", [0, 2])
def test_the_error_of_a_body_that_is_too_large_names_the_event_and_the_limit(
    monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    streams = memory_streams()
    streams.append(STREAM, [Event(type="Placed", data=b" " * 30_000)] * before + [LARGE])
    monkeypatch.setattr(encoding, "decode", lambda body, limit: decode(body, min(limit, 100_000)))
    named = rf"^Order-1 \(index {before}\): a body .* at most 100,000 bytes are read$"
    with pytest.raises(CorruptData, match=named):
        list(streams.read(STREAM))


def test_the_error_of_a_frame_that_is_too_large_names_the_page_and_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams = streams_of_frames(monkeypatch, [LARGE])
    monkeypatch.setattr(frames, "MAX_CONTENT", 100_000)
    named = r"^Order-1: page 0, frame 0: a body .* at most 100,000 bytes are read$"
    with pytest.raises(CorruptData, match=named):
        list(streams.read(STREAM))
