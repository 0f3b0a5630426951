"""What each release has written is read by this one, and gone on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from epochal import NO_STREAM, AtVersion, ConflictError, Event
from epochal.contrib.event_store_adapter import AggregateEvent
from epochal.errors import StreamDeleted
from epochal.reactions.parking import Parking
from tests.support.releases import ANN, EVERY_TAG, KEPT, World, feed, fill, view

RELEASES = sorted(KEPT.glob("*.json"))


@pytest.fixture(params=RELEASES, ids=lambda path: path.stem)
def dumped(request: pytest.FixtureRequest) -> dict[str, Any]:
    path: Path = request.param
    told: dict[str, Any] = json.loads(path.read_text())
    return told


@pytest.fixture
def world(dumped: dict[str, Any]) -> World:
    world = World()
    world.restore(dumped)
    return world


def test_there_is_a_release_to_be_held_to() -> None:
    assert RELEASES


def test_this_release_reads_what_an_earlier_one_wrote(world: World, dumped: dict[str, Any]) -> None:
    assert view(world) == dumped["read"]


@pytest.mark.slow
def test_what_is_written_today_is_read_alike() -> None:
    """Else a file of a release would show what its own library made of it, and not what was appended."""
    written = World()
    fill(written)
    again = World()
    again.restore(written.dump())
    assert view(again) == view(written)


def test_streams_of_an_earlier_release_take_appends_on_their_versions(
    world: World, dumped: dict[str, Any]
) -> None:
    for kind, store in {"streams": world.on.streams, "tips": world.on.tips}.items():
        for stream, told in dumped["read"][kind].items():
            if told["version"] is None or stream == "Order-5":
                with pytest.raises(StreamDeleted):
                    store.append(stream, [Event(type="Late")])
                continue
            with pytest.raises(ConflictError):
                store.append(stream, [Event(type="Late")], expected=AtVersion(version=told["version"] - 1))
            at = AtVersion(version=told["version"])
            assert store.append(stream, [Event(type="Later")], expected=at).version == told["version"] + 1
            assert [each.type for each in store.read(stream)][-1] == "Later"


def test_a_key_of_an_earlier_release_is_one_append_still(world: World) -> None:
    order = {"sku": "A-1", "quantity": 2, "currency": "EUR", "country": "Germany", "note": "as agreed"}
    for store in (world.on.streams, world.on.tips):
        made = store.append(
            "Order-2", [Event.json("Placed", order)], expected=NO_STREAM, idempotency_key="key-1"
        )
        assert (made.replayed, made.version) == (True, 1)


def test_aggregates_and_tags_of_an_earlier_release_go_on(world: World) -> None:
    lock = world.on.aggregates.lock(ANN)
    assert lock is not None
    world.on.aggregates.append(ANN, [AggregateEvent.json("Credited", {})], expected=lock)
    assert len(list(world.on.aggregates.events_after(ANN, 0))) == 5
    for tagged in (world.on.tagged, world.on.dcb):
        read = tagged.read(EVERY_TAG)
        more = [Event.json("Enrolled", {"n": 3}, tags=("course:c1",))]
        tagged.append(more, fail_if=EVERY_TAG, after=read.position)
        with pytest.raises(ConflictError):
            tagged.append(more, fail_if=EVERY_TAG, after=read.position)


def test_the_feed_goes_on_where_an_earlier_release_left_it_and_parked_streams_stay_parked(
    world: World, dumped: dict[str, Any]
) -> None:
    world.on.streams.append("Order-1", [Event.json("Placed", {})])
    world.on.streams.append("Broken-1", [Event.json("Broke", {})])
    before = dumped["read"]["counts"]["Placed"]
    reactor = world.react()
    assert world.counts.get("Placed") == before + 1
    assert [each.stream for each in Parking(reactor=reactor).streams(30_000)] == ["Broken-1"]
    for partition, told in dumped["read"]["feed"].items():
        now = feed(world, int(partition))
        assert now[: len(told)] == told
