"""Metadata of a block reach every append below it, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from epochal import Event, StreamAppend, metadata, reaction
from epochal.codec import json
from epochal.contrib.equinox import memory_tips
from epochal.contrib.sekiban import memory_dcb_events
from epochal.errors import InvalidInput
from epochal.model.events import Recorded
from epochal.reactions.definition import Delivery
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import memory_streams, memory_tagged_events


@pytest.fixture(params=[memory_streams, memory_tips])
def streams(request: pytest.FixtureRequest) -> Streams:
    found: Streams = request.param()
    return found


def _last(streams: Streams, stream: str = "Door-1") -> Recorded:
    return next(iter(streams.read(stream, direction="backward", limit=1)))


def _meta(event: Recorded) -> Any:
    assert isinstance(event.meta, bytes)
    return json.loads(event.meta)


def test_events_in_a_block_get_its_metadata_and_those_behind_it_do_not(streams: Streams) -> None:
    with metadata(user="ada", correlation_id="c-1", causation_id="e-1"):
        streams.append("Door-1", [Event(type="Opened")])
    opened = _last(streams)
    assert (_meta(opened), opened.correlation_id, opened.causation_id) == ({"user": "ada"}, "c-1", "e-1")
    streams.append("Door-1", [Event(type="Shut")])
    shut = _last(streams)
    assert (shut.meta, shut.correlation_id, shut.causation_id) == (b"", None, None)


def test_what_an_event_says_itself_wins_over_the_inner_block_and_that_over_the_outer(
    streams: Streams,
) -> None:
    own = Event(type="Opened", meta=b'{"user": "eve"}', correlation_id="own")
    with (
        metadata(user="ada", tenant="north", correlation_id="c-1"),
        metadata(tenant="south", causation_id="e-2"),
    ):
        streams.append("Door-1", [own])
    opened = _last(streams)
    assert _meta(opened) == {"user": "eve", "tenant": "south"}
    assert (opened.correlation_id, opened.causation_id) == ("own", "e-2")


def test_an_append_to_several_streams_has_it_in_each() -> None:
    streams = memory_streams()
    with metadata(correlation_id="c-1"):
        streams.append_all(
            [StreamAppend(stream=name, events=[Event(type="Moved")]) for name in ("Door-1", "Door-2")]
        )
    assert {_last(streams, name).correlation_id for name in ("Door-1", "Door-2")} == {"c-1"}


@pytest.mark.parametrize("opened", [memory_tagged_events, memory_dcb_events])
def test_tagged_events_get_it_too(opened: Callable[[], TaggedStore]) -> None:
    store = opened()
    own = [
        Event(type="Taken", tags=["course:1"]),
        Event(type="Taken", tags=["course:1"], meta=b'{"user": "eve", "seat": 1.10}', correlation_id="own"),
        Event(type="Taken", tags=["course:1"], meta=b'{"seat": 2}'),
    ]
    with metadata(user="ada", correlation_id="c-1", causation_id="e-1"):
        bare, full, in_bytes = store.append(own).events
    assert (bare.meta, bare.correlation_id, bare.causation_id) == (b'{"user":"ada"}', "c-1", "e-1")
    assert (full.meta, full.correlation_id) == (b'{"user":"eve","seat":1.10}', "own")
    assert in_bytes.meta == b'{"user":"ada","seat":2}'
    with (
        metadata(user="ada"),
        pytest.raises(InvalidInput, match=r"events.meta: must be a JSON object, .* \(Taken\)"),
    ):
        store.append([Event(type="Taken", tags=["course:1"], meta=b"[]")])
    assert store.append([Event(type="Left", tags=["course:1"])]).events[0].meta == b""


@pytest.mark.parametrize("opened", [memory_tagged_events, memory_dcb_events])
def test_tagged_events_that_are_repeated_in_another_block_are_stored_once_and_keep_the_first(
    opened: Callable[[], TaggedStore],
) -> None:
    store = opened()
    once = Event(type="Taken", tags=["course:1"], data=b"{}", id=str(UUID(int=7)))
    with metadata(user="ada", correlation_id="c-1"):
        first = store.append([once])
    with metadata(user="bob", correlation_id="c-2", causation_id="e-2"):
        again = store.append([once])
    assert again.replayed
    assert again.events == first.events
    assert store.append([once]).replayed
    assert first.events[0].meta == b'{"user":"ada"}'
    with metadata(user="ada", correlation_id="c-1"), pytest.raises(InvalidInput, match="other contents"):
        store.append([replace(once, data=b"[]")])


def test_a_block_that_fails_leaves_nothing_behind(streams: Streams) -> None:
    with pytest.raises(ZeroDivisionError), metadata(user="ada"):
        raise ZeroDivisionError
    streams.append("Door-1", [Event(type="Opened")])
    assert _last(streams).meta == b""


def test_another_thread_has_none_of_it(streams: Streams) -> None:
    with metadata(user="ada"):
        thread = threading.Thread(target=streams.append, args=("Door-1", [Event(type="Opened")]))
        thread.start()
        thread.join()
    assert _last(streams).meta == b""


def test_a_repeat_under_a_key_may_come_from_another_block(streams: Streams) -> None:
    with metadata(request="1"):
        first = streams.append("Door-1", [Event(type="Opened")], idempotency_key="k")
    with metadata(request="2"):
        again = streams.append("Door-1", [Event(type="Opened")], idempotency_key="k")
    assert (again.replayed, again.version) == (True, first.version)


@pytest.mark.parametrize("meta", [b"sealed", b"[1]", b"5", b"\xff"])
def test_an_event_whose_own_metadata_take_no_members_is_refused_and_nothing_is_appended(
    streams: Streams, meta: bytes
) -> None:
    with (
        metadata(user="ada"),
        pytest.raises(InvalidInput, match=r"events\.meta.* must be a JSON object, .* \(Opened\)"),
    ):
        streams.append("Door-1", [Event(type="Opened", meta=meta)])
    assert streams.load("Door-1") is None
    with metadata(correlation_id="c"):
        streams.append("Door-1", [Event(type="Opened", meta=meta)])
    assert _last(streams).meta == meta


@pytest.mark.parametrize("value", [b"bytes", float("nan"), object(), {1, 2}])
def test_what_is_not_json_is_refused_where_the_block_begins(value: Any) -> None:
    with pytest.raises(InvalidInput, match="user: must be JSON"), metadata(user=value):
        raise AssertionError("the block must not begin")


@pytest.mark.parametrize("given", ["", "x" * 1025])
def test_an_id_that_no_event_could_have_is_refused_where_the_block_begins(given: str) -> None:
    with pytest.raises(InvalidInput, match="correlation_id"), metadata(correlation_id=given):
        raise AssertionError("the block must not begin")


def _copied(feed: MemoryStore, *, each: bool) -> list[tuple[str | None, str | None]]:
    @reaction(name="copier", categories=["Door"])
    def copier(delivery: Delivery) -> None:
        for event in delivery.each() if each else delivery.events:
            feed.streams.append(f"Copy-{event.type}", [Event(type=event.type)])

    feed.react(copier)
    copies = (_last(feed.streams, f"Copy-{name}") for name in ("Opened", "Shut"))
    return [(copy.correlation_id, copy.causation_id) for copy in copies]


@pytest.mark.parametrize("each", [True, False])
def test_what_a_reaction_appends_names_its_cause_and_goes_on_with_its_conversation(*, each: bool) -> None:
    feed = MemoryStore()
    feed.streams.append("Door-1", [Event(type="Opened", correlation_id="c-1")])
    feed.streams.append("Door-2", [Event(type="Shut")])
    assert _copied(feed, each=each) == [("c-1", "Door-1@0"), ("Door-2@0", "Door-2@0")]


def test_of_several_events_in_one_delivery_each_is_the_cause_while_it_is_handled() -> None:
    feed = MemoryStore()
    feed.streams.append("Door-1", [Event(type="Opened", correlation_id="c-1"), Event(type="Shut")])
    assert _copied(feed, each=True) == [("c-1", "Door-1@0"), ("Door-1@1", "Door-1@1")]


def test_several_events_handled_together_have_no_single_cause_and_one_conversation_at_most() -> None:
    feed = MemoryStore()
    feed.streams.append("Door-1", [Event(type=name, correlation_id="c-1") for name in ("Opened", "Shut")])
    assert _copied(feed, each=False) == [("c-1", None), ("c-1", None)]
