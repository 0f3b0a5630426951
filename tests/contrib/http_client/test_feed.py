"""The feed over HTTP: pages, all partitions in turn, and positions to go on from."""

from __future__ import annotations

from itertools import islice

import pytest

from epochal import Event
from epochal.contrib.http_client.feed import NOWHERE, POLL_SECONDS
from epochal.errors import InvalidInput
from epochal.index.checkpoints import Checkpoint, FeedPosition
from epochal.layout.changes import Removal
from tests.contrib.http_client.memory_api import MemoryApi
from tests.support.api import Api


@pytest.fixture
def memory() -> MemoryApi:
    return MemoryApi(api=Api(partitions=3))


def append(memory: MemoryApi, *streams: str) -> None:
    for stream in streams:
        memory.streams.append(stream, [Event.json("A", {"in": stream})])
    memory.api.index()


NAMES = [f"Cart-{number}" for number in range(12)]


def test_the_feed_has_every_event_of_all_partitions_and_goes_on_from_a_position(memory: MemoryApi) -> None:
    append(memory, *NAMES)
    feed = memory.streams.feed
    assert len({item.partition for item in feed.partitions()}) > 3
    batches = [*feed.read(limit=1)]
    events = [item.event for batch in batches for item in batch.items]
    assert sorted(event.stream for event in events if event is not None) == sorted(NAMES)
    assert all(event is not None and event.json() == {"in": event.stream} for event in events)
    assert [batch.at_tail for batch in batches][-1]
    end = batches[-1].position
    assert [*feed.read(start=end)] == []
    append(memory, "Order-1")
    (batch,) = feed.read(start=end, categories=["Order"], data=False)
    assert [(item.stream, item.event) for item in batch.items] == [("Order-1", None)]


def test_following_takes_turns_rests_at_the_tails_and_never_skips(memory: MemoryApi) -> None:
    append(memory, *NAMES)
    feed, seen, position = memory.streams.feed, list[str](), FeedPosition()
    for batch in feed.follow(limit=1):
        seen += [item.stream for item in batch.items]
        position = batch.position
        if batch.at_tail:
            break
    assert (batch.partition, sorted(seen)) == (NOWHERE, sorted(NAMES))
    following = feed.follow(start=position)
    assert next(following).at_tail
    append(memory, "Order-1")
    got = next(following)
    assert [item.stream for item in got.items] == ["Order-1"]
    assert memory.clock.pauses == [POLL_SECONDS]


def test_one_may_begin_at_the_tail_or_at_a_moment(memory: MemoryApi) -> None:
    append(memory, *NAMES)
    feed = memory.streams.feed
    assert [*feed.read(start="tail")] == []
    everything = [item for batch in feed.read(start="2020-01-01T00:00:00Z") for item in batch.items]
    assert len(everything) == len(NAMES)
    (partition, *_) = feed.partitions()
    backward = feed.page(partition.partition, direction="backward", data=True)
    forward = feed.page(partition.partition, data=True)
    assert backward.items == tuple(reversed(forward.items))


def test_removals_and_pruned_events_say_what_is_gone(memory: MemoryApi) -> None:
    append(memory, "Cart-1", "Cart-1")
    memory.streams.prune("Cart-1", 1)
    memory.api.index()
    items = [item for batch in memory.streams.feed.read(removals=True) for item in batch.items]
    assert [(item.type, item.gone, item.removal) for item in items] == [
        ("A", "pruned", None),
        ("A", None, None),
        ("$pruned", None, Removal("Cart-1", 1, "pruned", 2)),
    ]


def test_one_waits_until_an_append_is_in_the_feed(memory: MemoryApi) -> None:
    done = memory.streams.append("Cart-1", [Event(type="A")])
    assert memory.streams.feed.wait_for("Cart-1", done.version, wait=0) is None
    memory.api.index()
    position = memory.streams.feed.wait_for("Cart-1", done.version)
    assert position is not None
    assert [*memory.streams.feed.read(start=position)] == []


def test_a_checkpoint_of_another_index_is_refused(memory: MemoryApi) -> None:
    append(memory, "Cart-1")
    (partition, *_) = memory.streams.feed.partitions()
    with pytest.raises(InvalidInput) as caught:
        [*islice(memory.streams.feed.read(start={partition.partition: Checkpoint.of(9, 9)}), 1)]
    assert caught.value.field == "from"
