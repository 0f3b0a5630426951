"""Handlers that are `async def`: awaited on one event loop, and held to what is promised of plain ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from epochal import Delivery, Event, reaction
from epochal.aio.stores import AsyncStreams
from epochal.errors import InvalidInput
from epochal.reactions.calls import Calls
from epochal.testing.feeds import MemoryStore


@pytest.fixture
def feed() -> MemoryStore:
    found = MemoryStore()
    for number in range(6):
        found.streams.append(f"Cart-{number}", [Event(type="Opened"), Event(type="Paid")])
    return found


def test_every_event_is_handled_in_order_within_its_stream_and_streams_wait_side_by_side(
    feed: MemoryStore,
) -> None:
    handled: dict[str, list[int]] = {}
    loops: set[int] = set()
    under_way = most = 0

    @reaction(name="board", max_events=1)
    async def board(delivery: Delivery) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.005)
        under_way -= 1
        loops.add(id(asyncio.get_running_loop()))
        handled.setdefault(delivery.stream, []).extend(event.index for event in delivery.each())

    feed.react(board)
    assert handled == {f"Cart-{number}": [0, 1] for number in range(6)}
    assert most > 1
    assert len(loops) == 1


def test_a_handler_that_raises_is_awaited_again_and_its_stream_is_parked_and_replayed(
    feed: MemoryStore,
) -> None:
    broken = {"Cart-3"}
    attempts: list[int] = []
    handled: list[tuple[str, int]] = []

    @reaction(name="board", attempts=3)
    async def board(delivery: Delivery) -> None:
        await asyncio.sleep(0)
        if delivery.stream in broken:
            attempts.append(delivery.attempt)
            raise LookupError("no such cart")
        handled.extend((delivery.stream, event.index) for event in delivery.events)

    feed.react(board)
    (parked,) = feed.parking(board).streams(30_000)
    assert parked.cause is not None
    assert (parked.stream, parked.index, parked.cause.text) == ("Cart-3", 0, "LookupError: no such cart")
    assert attempts == [1, 1, 2, 3]
    assert len(handled) == 10
    broken.clear()
    assert feed.parking(board).replay(30_000, "Cart-3", seconds=60).unparked
    assert handled[-2:] == [("Cart-3", 0), ("Cart-3", 1)]


def test_a_handler_that_is_cancelled_has_failed(feed: MemoryStore) -> None:
    @reaction(name="board", attempts=1, categories=["Cart"])
    async def board(delivery: Delivery) -> None:
        if delivery.stream == "Cart-2":
            raise asyncio.CancelledError

    (ran,) = [ran for ran in feed.react(board) if ran.parked]
    assert [(failure.stream, failure.index) for failure in ran.parked] == [("Cart-2", 0)]


def test_a_handler_that_ends_the_process_ends_the_run_and_nothing_is_parked(feed: MemoryStore) -> None:
    @reaction(name="board")
    async def board(delivery: Delivery) -> None:
        if delivery.stream == "Cart-2":
            raise SystemExit(3)

    before = set(threading.enumerate())
    with pytest.raises(SystemExit):
        feed.react(board)
    assert feed.parking(board).streams(30_000) == []
    assert not set(threading.enumerate()) - before


def test_what_it_appends_names_the_event_as_its_cause(feed: MemoryStore) -> None:
    streams = AsyncStreams(feed.streams)

    @reaction(name="receipts", types=["Paid"])
    async def receipts(delivery: Delivery) -> None:
        for event in delivery.each():
            await streams.append(f"Receipt-{event.stream}", [Event(type="Printed")])

    feed.react(receipts)
    (printed,) = feed.streams.read("Receipt-Cart-4")
    assert (printed.causation_id, printed.correlation_id) == ("Cart-4@1", "Cart-4@1")


def test_what_it_runs_within_is_entered_once_on_its_loop_and_left_at_the_end(feed: MemoryStore) -> None:
    told: list[object] = []

    @asynccontextmanager
    async def place() -> AsyncIterator[None]:
        told.append(asyncio.get_running_loop())
        yield
        told.append("left")

    entered = place()

    @reaction(name="board", within=entered)
    async def board(delivery: Delivery) -> None:
        assert asyncio.get_running_loop() is told[0]
        told.append(delivery.stream)

    with Calls(board) as calls:
        with calls:
            calls(Delivery(group="board", partition=0, stream="A-1", events=()))
        calls(Delivery(group="board", partition=0, stream="A-2", events=()))
    assert told[1:] == ["A-1", "A-2", "left"]


def test_what_it_runs_within_fails_the_run_and_not_a_stream(feed: MemoryStore) -> None:
    @asynccontextmanager
    async def place() -> AsyncIterator[None]:
        raise LookupError("no region")
        yield

    @reaction(name="board", within=place())
    async def board(_: Delivery) -> None:
        raise AssertionError

    with pytest.raises(LookupError, match="no region"):
        feed.react(board)


def test_what_leaving_raises_is_raised(feed: MemoryStore) -> None:
    @asynccontextmanager
    async def place() -> AsyncIterator[None]:
        yield
        raise LookupError("left")

    @reaction(name="board", within=place())
    async def board(_: Delivery) -> None:
        """Nothing to do."""

    with pytest.raises(LookupError, match="left"), Calls(board):
        pass


class Board:
    async def __call__(self, delivery: Delivery) -> None:
        """Awaited as well."""

    async def method(self, delivery: Delivery) -> None:
        """And this."""


async def handle(_: object, delivery: Delivery) -> None:
    """And this, once its first argument is given."""


@pytest.mark.parametrize("handler", [Board(), Board().method, partial(handle, 1)])
def test_whatever_is_async_is_awaited_by_tests_that_call_it(handler: Board) -> None:
    board = reaction(name="board")(handler)
    assert board.asynchronous
    delivery = Delivery(group="board", partition=0, stream="A-1", events=())
    called = board(delivery)
    assert asyncio.iscoroutine(called)
    asyncio.run(called)


def test_a_plain_handler_runs_within_nothing() -> None:
    @asynccontextmanager
    async def place() -> AsyncIterator[None]:
        yield

    with pytest.raises(InvalidInput, match="within: must not be given unless the handler is an `async def`"):
        reaction(name="board", within=place())(lambda _: None)
