"""The feed in memory runs a reaction to its rest, and has on record what blocks it."""

from __future__ import annotations

from typing import Any

import pytest

from epochal import Delivery, Event, reaction
from epochal.errors import InvalidInput
from epochal.testing.feeds import MemoryStore

STEPS = ("Placed", "Paid", "Shipped", "Closed")


def test_a_reaction_handles_what_it_appends_itself() -> None:
    feed = MemoryStore()
    seen: list[str] = []

    @reaction(name="steps", categories=["Order"])
    def step(delivery: Delivery) -> None:
        for event in delivery.each():
            seen.append(event.type)
            if event.type != STEPS[-1]:
                feed.streams.append(event.stream, [Event(type=STEPS[STEPS.index(event.type) + 1])])

    feed.streams.append("Order-1", [Event(type="Placed")])
    runs = feed.react(step)
    assert seen == [*STEPS]
    assert sum(run.events for run in runs) == len(STEPS)
    assert all(run.at_tail for run in runs)
    assert any(run.moved for run in runs)
    assert {figures.events for figures in feed.groups.standing("steps")} == {0}
    feed.react(step)
    assert seen == [*STEPS], "nothing is left"


def test_one_result_is_returned_for_each_partition_however_often_it_ran() -> None:
    feed = MemoryStore()

    @reaction(name="copies", categories=["Order"])
    def copy(delivery: Delivery) -> None:
        for event in delivery.each():
            feed.streams.append(
                f"Copy-{event.stream}", [Event(type=event.type)], idempotency_key=delivery.key(event)
            )
            if event.stream == "Order-1":
                feed.streams.append("Order-2", [Event(type="Placed")], idempotency_key=delivery.key(event))

    feed.streams.append("Order-1", [Event(type="Placed")])
    runs = feed.react(copy)
    assert len(runs) == len(feed.feed.partitions())
    assert sum(run.events for run in runs) == 2
    assert [each.type for each in feed.streams.read("Copy-Order-2")] == ["Placed"]


def test_a_reaction_that_feeds_itself_for_ever_is_told_so() -> None:
    feed = MemoryStore()

    @reaction(name="endless", categories=["Order"])
    def again(delivery: Delivery) -> None:
        feed.streams.append(delivery.stream, [Event(type="Placed")])

    feed.streams.append("Order-1", [Event(type="Placed")])
    with pytest.raises(
        InvalidInput, match="reaction: endless appends events that it handles itself, without end"
    ):
        feed.react(again)


@pytest.mark.parametrize("members", [1, 2])
def test_what_blocks_a_reaction_is_in_the_standing_of_its_group(members: int) -> None:
    feed = MemoryStore()
    fails = True

    @reaction(name="board", categories=["Order"], on_failure="block", attempts=2, members=members)
    def board(delivery: Delivery) -> None:
        if fails:
            raise ValueError(f"no room for {delivery.stream}")

    feed.streams.append("Order-1", [Event(type="Placed")])
    for runs in (1, 2):
        feed.react(board)
        (blocked,) = blocked_in(feed)
        assert (blocked.stream, blocked.index, blocked.cause, blocked.runs) == (
            "Order-1",
            0,
            "ValueError",
            runs,
        )
        assert blocked.due == ""
    fails = False
    feed.react(board)
    assert blocked_in(feed) == []


def blocked_in(feed: MemoryStore) -> list[Any]:
    return [failed for figures in feed.groups.standing("board") for failed in figures.blocked]
