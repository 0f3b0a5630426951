"""Readers of one process that wait at the same place share their looks."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from bench.tail import jumping
from epochal.aio.bridge import wait
from epochal.aio.stores import AsyncFeed
from epochal.errors import EpochalError, Unavailable
from epochal.feed import waiting
from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedPage
from epochal.feed.waiting import LONGEST_POLL, POLL_SECONDS
from epochal.plan.failures import Lost
from epochal.plan.ops import Get, Op, Reply
from epochal.store.driver import Patience
from tests.core.feed.feeds import Feeds
from tests.layouts.feed.test_reader import index, indexed, where


@pytest.fixture(autouse=True)
def _nothing_is_left() -> object:
    yield
    assert waiting._WATCHES == {}  # noqa: SLF001


# ------------------------------------------------------------------------------------------------------------- tasks


def by_the_loop(feeds: Feeds) -> FeedReader:
    """A reader of tasks, whose requests let other tasks run."""
    loop, reader = asyncio.get_running_loop(), feeds.reader()

    def execute(op: Op) -> Reply:
        wait(asyncio.sleep(0.01))
        return feeds.execute(op)

    sleep: Callable[[float], object] = lambda seconds: wait(asyncio.sleep(seconds))  # noqa: E731
    return reader.on(replace(reader.driver, execute=execute, clock=loop.time, sleep=sleep))


def looks(feeds: Feeds) -> int:
    return len([op for op in feeds.ops if isinstance(op, Get)])


def page(feed: AsyncFeed, seconds: float) -> asyncio.Task[FeedPage]:
    return asyncio.ensure_future(feed.page(0, start=TAIL, wait=seconds))


TAIL = indexed(["A-1"]).reader().page(0).next


def test_readers_that_wait_look_as_often_as_one_and_all_have_what_comes_at_once() -> None:
    async def play(readers: int) -> int:
        feeds = indexed(["A-1"])
        feed = AsyncFeed(by_the_loop(feeds))
        pages = [page(feed, 100.0) for _ in range(readers)]
        await asyncio.sleep(1)
        feeds.ops.clear()
        await asyncio.sleep(60)
        took = looks(feeds)
        index(feeds, "B-1")
        come, left = await asyncio.wait(pages, timeout=LONGEST_POLL + 0.1)
        assert not left
        assert all(where(each.result().items) == [("B-1", 0)] for each in come)
        return took

    assert jumping(play(50)) == jumping(play(1))


def test_readers_of_one_loop_do_not_wait_for_those_of_another_loop_of_their_thread() -> None:
    feeds, halted = indexed(["A-1"]), asyncio.new_event_loop()

    def feed() -> AsyncFeed:
        reader = by_the_loop(feeds)
        return AsyncFeed(reader.on(replace(reader.driver, place=-1)))  # as if both had one client

    async def play() -> FeedPage:
        found = page(feed(), 5.0)
        await asyncio.sleep(0.05)
        index(feeds, "B-1")
        return await asyncio.wait_for(found, 3.0)

    async def begin() -> asyncio.Task[FeedPage]:
        leading = page(feed(), 60.0)
        await asyncio.sleep(0.05)
        return leading

    async def end(leading: asyncio.Task[FeedPage]) -> None:
        leading.cancel()
        await asyncio.wait([leading])

    leading = halted.run_until_complete(begin())
    try:
        assert where(asyncio.run(play()).items) == [("B-1", 0)]
    finally:
        halted.run_until_complete(end(leading))
        halted.close()


def test_a_reader_whose_time_is_over_does_not_wait_for_the_others() -> None:
    async def play() -> None:
        feeds = indexed(["A-1"])
        feed, loop = AsyncFeed(by_the_loop(feeds)), asyncio.get_running_loop()
        long = page(feed, 300.0)
        await asyncio.sleep(100)
        begun, before = loop.time(), looks(feeds)
        found = await page(feed, 7.0)
        assert (found.items, found.next, found.at_tail) == ((), TAIL, True)
        assert loop.time() - begun == pytest.approx(7.0, abs=0.1)
        assert [op.consistent for op in feeds.ops[before:] if isinstance(op, Get)].count(True) == 2
        index(feeds, "B-1")
        assert (await long).items

    jumping(play())


@pytest.mark.parametrize("when", [5, 30])
@pytest.mark.parametrize("stopped", [(0,), (1,), (2,), (0, 1)])
def test_whoever_stops_or_ends_leaves_the_others_who_wait_a_leader(
    stopped: tuple[int, ...], when: int
) -> None:
    async def play() -> None:
        feeds = indexed(["A-1"])
        feed = AsyncFeed(by_the_loop(feeds))
        short = page(feed, 9.0)
        pages = list[asyncio.Task[FeedPage]]()
        for _ in range(3):
            await asyncio.sleep(0.001)
            pages.append(page(feed, 90.0))
        await asyncio.sleep(when)
        assert short.done() == (when > 9)
        for at in stopped:
            pages[at].cancel()
        await asyncio.sleep(40 - when)
        index(feeds, "B-1")
        others = [each for at, each in enumerate(pages) if at not in stopped]
        _, left = await asyncio.wait(others, timeout=LONGEST_POLL + 0.1)
        assert not left
        assert all(pages[at].cancelled() for at in stopped)

    jumping(play())


def test_who_ends_soon_after_the_leader_does_not_wait_for_the_next_ones_look() -> None:
    async def play() -> None:
        feed, loop = AsyncFeed(by_the_loop(indexed(["A-1"]))), asyncio.get_running_loop()
        pages = list[asyncio.Task[FeedPage]]()
        for seconds in (8.0, 30.0, 8.5):
            pages.append(page(feed, seconds))
            await asyncio.sleep(0.001)
        begun = loop.time()
        await pages[2]
        assert loop.time() - begun == pytest.approx(8.5, abs=0.1)
        await asyncio.wait(pages)

    jumping(play())


def test_readers_that_end_at_one_moment_share_the_last_look_which_is_consistent() -> None:
    async def play() -> None:
        feeds = indexed(["A-1"])
        feed = AsyncFeed(by_the_loop(feeds))
        pages = [page(feed, 30.0 + at / 1_000) for at in range(20)]
        await asyncio.sleep(25)
        feeds.ops.clear()
        await asyncio.wait(pages)
        last = [op.consistent for op in feeds.ops if isinstance(op, Get)]
        assert last[-1]
        assert last.count(True) == 1
        assert asyncio.get_running_loop().time() >= 30.0 - POLL_SECONDS

    jumping(play())


def test_who_follows_on_after_an_empty_page_does_not_look_again_at_once() -> None:
    async def play() -> None:
        feeds = indexed(["A-1"])
        pages = AsyncFeed(by_the_loop(feeds)).follow(0, start=TAIL, wait=5.0)
        assert not (await anext(pages)).items
        feeds.ops.clear()
        again = asyncio.ensure_future(anext(pages))
        await asyncio.sleep(POLL_SECONDS / 2)
        assert not feeds.ops
        index(feeds, "B-1")
        assert (await again).items
        await asyncio.sleep(1)
        index(feeds, "B-1")
        # One that comes back later looks first.
        begun = asyncio.get_running_loop().time()
        assert (await anext(pages)).items
        assert asyncio.get_running_loop().time() - begun < 0.1

    jumping(play())


def test_an_error_of_a_look_is_that_of_all_who_share_it_unless_it_is_of_the_leaders_deadline() -> None:
    async def play(within: float | None) -> list[BaseException | FeedPage]:
        feeds = indexed(["A-1"])
        reader = by_the_loop(feeds)
        driver = replace(reader.driver, patience=Patience(seconds=1.0))
        leader = reader.on(driver if within is None else driver.within(within))
        first = page(AsyncFeed(leader), 60.0)
        await asyncio.sleep(0.1)
        pages = [first, *(page(AsyncFeed(reader.on(driver)), 60.0) for _ in range(5))]
        await asyncio.sleep(5)

        def fault(_: Op) -> None:
            if within is None:
                raise Lost("gone")

        feeds.fault = fault
        await asyncio.sleep(20)
        feeds.fault = lambda _: None
        index(feeds, "B-1")
        return await asyncio.gather(*pages, return_exceptions=True)

    told = jumping(play(None))
    assert all(isinstance(each, Unavailable) for each in told)
    assert len(set(map(id, told))) == len(told)
    first, *others = jumping(play(10.0))
    assert isinstance(first, Unavailable)
    assert all(isinstance(each, FeedPage) and each.items for each in others)


def test_readers_of_other_clients_look_by_themselves() -> None:
    async def play() -> None:
        feeds, others = indexed(["A-1"]), indexed(["A-1"])
        pages = [page(AsyncFeed(by_the_loop(each)), 40.0) for each in (feeds, others)]
        await asyncio.sleep(20)
        index(others, "B-1")
        await asyncio.sleep(LONGEST_POLL + 0.1)
        assert [each.done() for each in pages] == [False, True]
        assert where((await pages[1]).items) == [("B-1", 0)]
        assert not (await pages[0]).items

    jumping(play())


# ------------------------------------------------------------------------------------------------------------ threads


class Gate:
    """A pause of whoever leads, which the test ends."""

    def __init__(self) -> None:
        self.asleep, self.awake = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, _: float) -> None:
        self.asleep.release()
        assert self.awake.acquire(timeout=60)


def test_threads_that_wait_share_one_look_and_leave_none_behind() -> None:
    feeds, gate, before = indexed(["A-1"]), Gate(), threading.active_count()
    reader = feeds.reader()
    reader = reader.on(replace(reader.driver, clock=time.monotonic, sleep=gate))
    with ThreadPoolExecutor(8) as calls:
        pages = [calls.submit(reader.page, 0, start=TAIL, wait=600.0) for _ in range(8)]
        gate.asleep.acquire(timeout=60)
        while sum(len(each.waiting) for each in waiting._WATCHES.values()) < 7:  # noqa: SLF001
            time.sleep(0.001)
        feeds.ops.clear()
        index(feeds, "B-1")
        looked = looks(feeds)
        gate.awake.release()
        assert all(where(each.result(60).items) == [("B-1", 0)] for each in pages)
        assert looks(feeds) == looked + 1
    assert threading.active_count() == before


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_task_never_waits_for_a_thread_nor_for_a_task_of_another_loop(in_a_loop: bool) -> None:
    feeds, gate = indexed(["A-1"]), Gate()
    reader = feeds.reader()
    leader = reader.on(replace(reader.driver, clock=time.monotonic, sleep=gate))

    def lead() -> FeedPage:
        if not in_a_loop:
            return leader.page(0, start=TAIL, wait=600.0)
        return asyncio.run(AsyncFeed(leader).page(0, start=TAIL, wait=600.0))

    async def play() -> None:
        loop = asyncio.get_running_loop()
        sleep: Callable[[float], object] = lambda seconds: wait(asyncio.sleep(seconds))  # noqa: E731
        mine = page(AsyncFeed(reader.on(replace(reader.driver, clock=loop.time, sleep=sleep))), 60.0)
        await asyncio.sleep(20)
        index(feeds, "B-1")
        await asyncio.sleep(LONGEST_POLL + 0.1)
        assert mine.done()

    with ThreadPoolExecutor(1) as calls:
        leads = calls.submit(lead)
        gate.asleep.acquire(timeout=60)
        try:
            jumping(play())
        finally:
            gate.awake.release()
        assert leads.result(60).items


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_of_a_process_whose_threads_wait_waits_by_itself() -> None:
    feeds, gate = indexed(["A-1"]), Gate()
    reader = feeds.reader()
    leader = reader.on(replace(reader.driver, clock=time.monotonic, sleep=gate))
    with ThreadPoolExecutor(1) as calls:
        waits = calls.submit(leader.page, 0, start=TAIL, wait=600.0)
        gate.asleep.acquire(timeout=60)
        held = waiting._LOCK  # noqa: SLF001
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            held.acquire()
            child = os.fork()
        if child:
            held.release()
        else:
            try:
                signal.alarm(60)
                found = reader.page(0, start=TAIL, wait=5.0)
                os._exit(0 if found.at_tail and feeds.clock.sleeps > 2 else 1)
            except EpochalError:
                os._exit(2)
        ended = time.monotonic() + 60
        while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < ended:
            time.sleep(0.01)
        index(feeds, "B-1")
        gate.awake.release()
        assert waits.result(60).items
    assert done == (child, 0)
