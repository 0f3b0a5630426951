"""The feed, read models, aggregates and decisions, awaited: tasks take turns at every request, and lose nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import randbytes

import pytest

from epochal import (
    Decider,
    Decisions,
    Delivery,
    Event,
    FeedEvent,
    open_feed,
    open_read_models,
    open_streams,
    projection,
)
from epochal.aio.bridge import each, run, wait
from epochal.aio.stores import AsyncDecisions, AsyncFeed, AsyncPlace, AsyncReadModel, AsyncReadModels
from epochal.contrib.event_store_adapter import open_aggregates
from epochal.contrib.event_store_adapter.aio import AsyncAggregateDeciders, AsyncAggregates
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.deciders.codecs import EventCodec
from epochal.errors import InvalidInput
from epochal.plan.ops import Op, Reply
from epochal.read_models.documents import Documents
from epochal.store.driver import Driver, pool
from epochal.testing.feeds import MemoryStore
from tests.support.async_deciders import async_decisions

ACCOUNT = aggregate_id("account", "1")
CODEC = EventCodec[int](
    encode=lambda number: Event(type="Added", data=b"%d" % number), decode=lambda stored: int(stored.data)
)
DECIDER = Decider[int, int, int](
    initial=int, evolve=lambda total, added: total + added, decide=lambda added, _: [added]
)


@dataclass
class World:
    """A deployment in memory whose requests each take a turn of the event loop."""

    feed: MemoryStore = field(default_factory=MemoryStore)
    waiting: int = 0
    most: int = 0

    def _paused(self, driver: Driver) -> Driver:
        async def pause() -> None:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            await asyncio.sleep(0.001)
            self.waiting -= 1

        def perform(op: Op) -> Reply:
            wait(pause())
            return self.feed.tables.execute(op)

        return replace(driver, execute=perform, sleep=lambda seconds: wait(asyncio.sleep(seconds)))

    @property
    def reader(self) -> AsyncFeed:
        return AsyncFeed(self.feed.feed.on(self._paused(self.feed.feed.driver)))

    @property
    def models(self) -> AsyncReadModels:
        found = self.feed.read_models
        return AsyncReadModels(replace(found, driver=self._paused(found.driver)))

    @property
    def aggregates(self) -> AsyncAggregates:
        found = self.feed.aggregates
        return AsyncAggregates(replace(found, driver=self._paused(found.driver)))

    @property
    def decisions(self) -> AsyncDecisions:
        found = self.feed.tagged
        store = replace(found, driver=self._paused(found.driver))
        return async_decisions(Decisions(store=store, attempts=30))


@pytest.mark.parametrize(("size", "most"), [(0, 1), (900, 3)], ids=["in batches", "one by one"])
def test_the_feed_is_read_with_the_events_of_many_streams_side_by_side_and_followed(
    size: int, most: int
) -> None:
    async def live() -> None:
        world = World()
        for number in range(12):
            for kind in ("Opened", "Shut"):  # a stream of two pages is read by itself
                world.feed.streams.append(f"Door-{number}", [Event(type=kind, data=randbytes(size))])
        world.feed.index()
        (partition,) = {each.partition for each in await world.reader.partitions() if each.tail > 0}
        pages = [page async for page in world.reader.read(partition, data=True, limit=5)]
        found = [item.event for page in pages for item in page.items]
        assert [event.type for event in found if event] == ["Opened", "Shut"] * 12
        assert world.most >= most
        assert (await world.reader.page(partition, limit=1)).items[0].stream == found[0].stream  # type: ignore[union-attr]
        assert len((await world.reader.spans(partition)).spans) == 12
        assert [one.index async for one in world.reader.events(partition, "Door-3", 0, 2)] == [0, 1]
        assert await world.reader.end_of(partition, "Door-3", 1) == 2

        async def later() -> None:
            await asyncio.sleep(0.01)
            world.feed.streams.append("Door-9", [Event(type="Locked")])
            world.feed.index()

        task = asyncio.ensure_future(later())
        async for page in world.reader.follow(partition, start=pages[-1].next, wait=60):
            assert [item.type for item in page.items] == ["Locked"]
            break
        await task

    asyncio.run(live())


def test_who_follows_the_feed_can_be_cancelled_at_any_time() -> None:
    async def live() -> None:
        world = World()

        async def follow() -> None:
            async for page in world.reader.follow(30_000, wait=60):
                assert not page.items

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(follow(), 0.05)

    asyncio.run(live())


def _delivery(stream: str, *types: str) -> Delivery:
    events = tuple(FeedEvent(stream=stream, index=index, type=kind) for index, kind in enumerate(types))
    return Delivery(group="counts", partition=30_000, stream=stream, events=events)


def _count(documents: Documents, event: FeedEvent) -> None:
    documents.put(event.type, documents.get(event.type, 0) + 1)


def test_a_read_model_takes_each_event_once_while_tasks_race_for_its_documents() -> None:
    async def live() -> None:
        models = World().models
        model = models.open("counts", 1)
        waiting = asyncio.ensure_future(model.wait_for("Door-7", 2))
        deliveries = [_delivery(f"Door-{number}", "Opened", "Shut") for number in range(8)]
        await asyncio.gather(*(model.apply(one, _count) for one in deliveries * 2))
        assert (await model.get("Opened"), await model.get("Lost", 0)) == (8, 0)
        assert await waiting
        assert await model.place("Door-7") == 2
        await models.open("counts", 2).apply(deliveries[0], _count)
        assert isinstance(await models.swap("counts", 2), AsyncReadModel)
        assert (await models.live("counts")).model.generation == 2

    asyncio.run(live())


def test_aggregates_are_appended_to_replayed_and_raced_for() -> None:
    async def live() -> None:
        aggregates = World().aggregates
        event = AggregateEvent(type="Opened", data=b"{}")
        begun = await aggregates.persist_event_and_snapshot(ACCOUNT, event, b"{}")
        answers = await asyncio.gather(
            *(aggregates.try_append(ACCOUNT, [event], expected=begun.lock) for _ in range(8))
        )
        assert sum(isinstance(answer, AggregateAppended) for answer in answers) == 1
        await asyncio.gather(*(aggregates.append(ACCOUNT, [event]) for _ in range(5)))
        lock = await aggregates.lock(ACCOUNT)
        assert lock is not None
        assert (await aggregates.persist_event(ACCOUNT, event, lock)).lock.seq_nr == 8
        found, snapshot = await aggregates.replay(ACCOUNT), await aggregates.latest_snapshot(ACCOUNT)
        assert found is not None
        assert snapshot == found.snapshot
        assert [one.seq_nr for one in found.events] == [2, 3, 4, 5, 6, 7, 8]
        assert [one.seq_nr for one in await aggregates.events_after(ACCOUNT, 6)] == [7, 8]
        with pytest.raises(InvalidInput, match="retention"):
            await aggregates.retire(ACCOUNT)

    asyncio.run(live())


def test_deciders_on_aggregates_decide_again_where_another_task_was_faster() -> None:
    async def live() -> None:
        state = StateCodec[int](encode=lambda total: b"%d" % total, decode=int)
        deciders = AsyncAggregateDeciders(
            store=World().aggregates, decider=DECIDER, codec=CODEC, state=state, attempts=30
        )
        await asyncio.gather(*(deciders.handle(ACCOUNT, number) for number in range(10)))
        assert await deciders.query(ACCOUNT, lambda total: total) == 45
        assert (await deciders.handle(ACCOUNT, decide=lambda total: [total])).state == 90
        assert (await deciders.handle(ACCOUNT, decide=lambda total: (total, []), with_result=True))[0] == 90
        assert (await deciders.load(ACCOUNT)).state == 90

    asyncio.run(live())


def test_decisions_on_tagged_events_decide_again_where_another_task_was_faster() -> None:
    taken = projection(tags=["course:1"], on={"Taken": lambda count, _: count + 1}, initial=0)

    async def live() -> None:
        decisions = World().decisions

        def take(states: dict[str, int]) -> list[Event]:
            full = states["taken"] >= 3
            return [] if full else [Event(type="Taken", data=b"{}", tags=["course:1"])]

        answers = await asyncio.gather(*(decisions.handle({"taken": taken}, take) for _ in range(6)))  # type: ignore[arg-type]
        assert sorted(len(answer.events) for answer in answers) == [0, 0, 0, 1, 1, 1]
        assert (await decisions.model({"taken": taken})).states == {"taken": 3}

    asyncio.run(live())


def test_calls_that_a_store_makes_side_by_side_are_tasks_no_more_at_a_time_than_it_asks_for() -> None:
    under_way: list[int] = []
    most = 0

    def call(number: int) -> int:
        nonlocal most
        under_way.append(number)
        most = max(most, len(under_way))
        wait(asyncio.sleep(0.001))
        under_way.remove(number)
        return number

    def asked() -> list[int]:
        with pool(3) as calls:
            return list(calls.map(call, range(10)))

    assert asyncio.run(run(asked)) == list(range(10))
    assert most == 3


def test_of_calls_side_by_side_of_which_one_fails_the_others_are_cancelled() -> None:
    ended: list[int] = []

    def call(number: int) -> None:
        wait(asyncio.sleep(0.001 if number == 0 else 60))
        ended.append(number)
        raise LookupError(str(number))

    def asked() -> None:
        with pool(3) as calls:
            list(calls.map(call, range(3)))

    with pytest.raises(LookupError, match="0"):
        asyncio.run(run(asked))
    assert ended == [0]


def test_calls_side_by_side_that_nobody_has_waited_for_are_cancelled_when_their_room_is_left() -> None:
    def asked() -> None:
        with pool(3) as calls:
            first, *_ = [calls.submit(lambda seconds: wait(asyncio.sleep(seconds)), k) for k in (0, 60, 60)]
            first.result()

    async def left() -> None:
        await run(asked)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(left())


def test_what_is_yielded_is_closed_where_its_reader_leaves() -> None:
    left: list[str] = []

    def numbers() -> Iterator[int]:
        try:
            while True:
                wait(asyncio.sleep(0))
                yield 1
        finally:
            wait(asyncio.sleep(0))
            left.append("closed")

    async def live() -> None:
        found = each(numbers)
        assert await anext(found) == 1
        await found.aclose()  # type: ignore[attr-defined]
        assert left == ["closed"]

    asyncio.run(live())


def test_stores_are_opened_before_their_place_is_entered_and_used_after() -> None:
    place = AsyncPlace(region="eu-central-1")
    aggregates = open_aggregates("j", "s", place=place)
    open_feed("index", open_streams("streams", place=place), aggregates, place=place)
    models = AsyncReadModels(open_read_models("models", place=place))
    with pytest.raises(InvalidInput, match="must be entered first"):
        asyncio.run(models.open("counts", 1).get("Opened"))
