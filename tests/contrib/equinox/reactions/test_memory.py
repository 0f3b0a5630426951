"""What a reactor holds, however old the index is and however long its streams are."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import randbytes

import pytest

from epochal.contrib.equinox.streams import Tips
from epochal.feed.reader import FeedReader
from epochal.feed.stream_history import StreamHistory
from epochal.layout.tables import INDEX
from epochal.model.events import Event
from epochal.plan.ops import Execute, Op, Put, Reply, Update
from epochal.reactions.definition import Delivery, Handler, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import PAGE_EVENTS, Reactor
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.contrib.equinox.feeds import TipFeeds
from tests.core.feed.feeds import Feeds
from tests.core.reactions.world import World
from tests.support.inline import Inline
from tests.surfaces.care.vast import AN_EPOCH, Vast

HOUR = 3_600.0
KB, MB = 1 << 10, 1 << 20


class Peaks:
    """A handler that notes, every so many events, the most that was allocated at once since it last did.

    A full collection frees what the interpreter keeps for the next objects, some 170 KB. When one happens depends on
    all that the process has, so there is one at the beginning and at each note.
    """

    def __init__(self, every: int) -> None:
        self.every, self.handled, self.noted = every, 0, list[int]()

    def __call__(self, delivery: Delivery) -> None:
        self.handled += len(delivery.events)
        if self.handled // self.every > len(self.noted):
            self.noted.append(tracemalloc.get_traced_memory()[1])
            gc.collect()
            tracemalloc.reset_peak()


def traced(run: Callable[[], object]) -> int:
    """Run, and the most that was allocated at once since the last note."""
    gc.collect()
    tracemalloc.start()
    run()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def beside(vast: Vast) -> Execute:
    """Events and their index from something vast, the states of groups from a table."""
    states = MemoryTables({INDEX.kind: replace(INDEX, stream=False)})

    def execute(op: Op) -> Reply:
        key = op.item if isinstance(op, Put) else getattr(op, "key", {})
        name = key.get("p", {}).get("S", "")
        return states.execute(op) if name.startswith("$ReaderCheckpoint-") else vast.execute(op)

    return execute


def reactor(execute: Execute, handler: Handler) -> Reactor:
    driver = Driver(execute=execute, meter=Meter())
    reader = FeedReader(
        driver=driver,
        table="index",
        histories=(StreamHistory(Streams(driver=driver, table="tips", layout=Tips())),),
    )
    reaction = Reaction(name="board", handler=handler)
    return Reactor(member=Member(reaction=reaction, reader=reader), executor=Inline)


@pytest.mark.proof
def test_memory_does_not_grow_with_the_age_of_the_index() -> None:
    """A stream for each event, a hundred in an epoch: whatever is kept of a stream or an epoch shows."""
    peaks, streams = Peaks(every=2_000), 8_000
    assert streams // AN_EPOCH == 80
    running = reactor(beside(Vast(streams)), peaks)
    traced(lambda: running.run(0, seconds=HOUR))
    assert peaks.handled == streams
    first, *later = peaks.noted
    assert len(later) == 3
    assert max(later) < 1.1 * first


@pytest.mark.slow
@pytest.mark.parametrize(("feeds", "most"), [(TipFeeds, 2 * MB), (Feeds, 5 * MB)])
def test_of_a_long_stream_it_holds_a_page_and_a_delivery_and_not_the_stream(
    feeds: Callable[[], Feeds], most: int
) -> None:
    """Bodies are stored packed, so whatever is held of them unpacked is the library's own.

    A part of a stream in pages is a megabyte of items, whose frames are unpacked one after another.
    """
    world, size, turns = World(feeds=feeds()), 8 * KB, 100
    for _ in range(turns):
        events = [Event(type="t", data=randbytes(size).hex().encode()) for _ in range(20)]
        world.feeds.streams.append("Long-1", events)
    world.index()
    handled = []
    running = world.reactor(handler=lambda delivery: handled.append(len(delivery.events)), max_events=10)
    peak = traced(lambda: running.run(0, seconds=HOUR))
    assert sum(handled) == 20 * turns
    assert max(handled) == 10
    assert 20 * turns * 2 * size > 30 * MB
    assert peak < most


@pytest.mark.slow
def test_what_it_knows_of_the_feed_at_once_is_a_page() -> None:
    handled, saved = list[str](), list[int]()
    perform = beside(Vast(5_000))

    def execute(op: Op) -> Reply:
        if isinstance(op, Put | Update):
            saved.append(len(handled))
        return perform(op)

    reactor(execute, lambda delivery: handled.append(delivery.stream)).run(0, seconds=HOUR)
    assert saved[-1] == len(handled) == 5_000
    assert max(after - before for before, after in pairwise(saved)) <= PAGE_EVENTS + AN_EPOCH
