"""Reads in batches and reads of one stream at a time return the same events, whatever streams went through."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from epochal.codec.bodies import MAX_DECODED, ONE_BLOCK
from epochal.errors import CorruptData
from epochal.feed import batch_reading
from epochal.feed.batch_reading import Range
from epochal.feed.events import FeedEvent, UnopenedFeedEvent
from epochal.feed.hydration import events_of
from epochal.feed.stream_history import StreamHistory
from epochal.layout.changes import Span
from epochal.model.events import Event
from epochal.pages import reading
from epochal.pages.items import Page, page_key, read_page, write_page
from epochal.pages.layout import Pages
from epochal.pages.pruning import delete
from epochal.plan.batches import get_all
from epochal.plan.ops import BatchGet, Items, Op, Put, Query, Reply, Steps
from epochal.plan.values import Item, text
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_deployment, memory_tables

SEEDS = range(16)
TABLE = "streams"


@dataclass
class World:
    """A generated store, ranges of its streams, and the requests that reads of them make."""

    tables: MemoryTables
    streams: Streams
    ranges: list[Range]
    ops: list[Op]

    def history(self, *, place: Callable[[], float] | None = None) -> StreamHistory:
        """The history, whose batches return items in the order of the numbers that `place` returns."""

        def execute(op: Op) -> Reply:
            self.ops.append(op)
            reply = self.tables.execute(op)
            if place is not None and isinstance(op, BatchGet):
                assert isinstance(reply, Items)
                items = sorted(reply.items, key=lambda _: place())
                return replace(reply, items=tuple(items))
            return reply

        return StreamHistory(self.streams.on(replace(self.streams.driver, execute=execute)))


def generated(seed: int) -> World:
    """A store of streams that are short, long, pruned, emptied, deleted, broken, large, or in the bucket."""
    chance = random.Random(seed)
    tables = memory_tables()
    streams = memory_deployment(tables).streams
    ranges: list[Range] = []
    for number in range(chance.randint(8, 40)):
        stream = f"Cart-{number}"
        for _ in range(chance.choice((0, 1, 1, 1, 1, 2, 3, 12))):
            streams.append(stream, [_event(chance) for _ in range(chance.choice((1, 1, 1, 2, 5)))])
        state = streams.load(stream)
        version = 0 if state is None else state.version
        _change(chance, tables, streams, stream, version)
        first = chance.choice((0, 0, 0, 0, chance.randint(0, version)))
        end = max(first, version + chance.choice((0, 0, 0, 0, -1, 2)))
        if end > first:
            ranges.append((stream, first, end))
    return World(tables=tables, streams=streams, ranges=ranges, ops=[])


def _event(chance: random.Random) -> Event:
    """An event that is small, large, larger still once decoded, in the bucket, or not plain."""
    size = chance.choice((0, 20, 20, 20, 200, 5_000))
    data = chance.randbytes(size)
    match chance.randint(0, 11):
        case 0:
            return Event(type="Spaces", data=b" " * 300_000)
        case 1:
            return Event(type="Stored", data=chance.randbytes(450_000) if chance.random() < 0.1 else data)
        case 2:
            return Event(type="Dated", data=data, timestamp="2020-01-01T00:00:00Z")
        case 3:
            id_ = f"{chance.getrandbits(128):032x}"
            return Event(
                type="Named", data=data, id="-".join((id_[:8], id_[8:12], id_[12:16], id_[16:20], id_[20:]))
            )
        case 4:
            return Event(type="Caused", data=data, meta=b'{"a":1}', causation_id="x", correlation_id="y")
        case _:
            return Event(type="Placed", data=data)


def _change(chance: random.Random, tables: MemoryTables, streams: Streams, stream: str, version: int) -> None:
    """Prune, delete or break a stream, or leave it as it is."""
    if not version:
        return
    match chance.randint(0, 13):
        case 0:
            streams.prune(stream, before=chance.randint(1, version))
        case 1:
            streams.delete(stream, leave_open=chance.random() < 0.5)
        case 2:
            # A deletion that has written its tombstone, and nothing else.
            steps = delete(
                TABLE,
                stream,
                version,
                f"{chance.getrandbits(128):032x}",
                leave_open=chance.random() < 0.5,
                writes=0,
            )
            streams.driver.run(steps)
        case 3 | 4:
            items = [item for item in tables.items(TABLE) if item["p"]["S"] == stream]
            item = chance.choice(items)
            tables.execute(Put(table=TABLE, item=_broken(chance, item)))
        case 5 | 6:
            # A first page that is older than the others, as replication may leave it for a while.
            page = next(read_page(item) for item in tables.items(TABLE) if item["p"]["S"] == stream)
            kept = page.frames[: max(1, len(page.frames) - chance.randint(0, 1))]
            version = page.index + sum(frame.count for frame in kept)
            older = replace(page, frames=kept, version=version, full=False, unfolds=b"", stamp=None)
            tables.execute(Put(table=TABLE, item=write_page(older)))


def _broken(chance: random.Random, item: Item) -> Item:
    """An item that contradicts itself, is none of the layout, or has a broken frame."""
    match chance.randint(0, 3):
        case 0:
            return {**item, "n": {"N": str(int(item["n"]["N"]) + 1)}}
        case 1:
            return {name: value for name, value in item.items() if name != "r"}
        case 2:
            return {**item, "x": text("no")}
        case _:
            frames = [*item.get("f", {"L": []})["L"]]
            if not frames:
                return {**item, "z": text("no")}
            place = chance.randrange(len(frames))
            frames[place] = {"B": bytes(frames[place]["B"])[:-1] + b"\xff\xff"}
            return {**item, "f": {"L": frames}}


def shown(event: FeedEvent | UnopenedFeedEvent) -> tuple[object, ...]:
    """All that an event has, opened as far as it can be."""
    opened = event.decode(MAX_DECODED) if isinstance(event, UnopenedFeedEvent) else event
    assert opened is not None
    fault = opened.fault
    return replace(opened, fault=None), type(fault), str(fault)


Hydrating = Callable[[StreamHistory], Any]

WAYS: dict[str, Hydrating] = {
    "events": lambda history: history.events(),
    "claims": lambda history: history.events(fetch=False),
    "unopened": lambda history: history.unopened(),
    "unopened, fetched": lambda history: history.unopened(fetch=True),
}


def in_batches(world: World, way: str, **options: Any) -> list[tuple[object, ...]]:
    """The events of all ranges, read as pages of the feed read them."""
    spans = [Span(stream, first, ("x",) * (end - first)) for stream, first, end in world.ranges]
    hydrate = WAYS[way](world.history(**options))
    return [shown(event) for event in events_of(spans, hydrate, lambda: 64)]


def one_by_one(world: World, way: str) -> list[tuple[object, ...]]:
    """The events of all ranges, each range read by itself."""
    hydrate = WAYS[way](world.history())
    return [shown(event) for range_ in world.ranges for event in hydrate(*range_)]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches go on, whatever they miss."""
    monkeypatch.setattr(batch_reading, "TOLERATED", 1.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_batches_return_what_single_reads_return(seed: int, way: str) -> None:
    world = generated(seed)
    assert in_batches(world, way) == one_by_one(world, way)


@pytest.mark.parametrize("seed", SEEDS)
def test_batches_that_stop_after_wrong_guesses_return_what_single_reads_return(seed: int) -> None:
    world = generated(seed)
    assert in_batches(world, "events") == one_by_one(world, "events")


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_items_in_a_batch_changes_nothing(seed: int) -> None:
    world = generated(seed)
    luck = random.Random(seed).random
    assert in_batches(world, "events", place=luck) == one_by_one(world, "events")


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_large_event_of_a_batch_comes_opened(seed: int) -> None:
    world = generated(seed)
    spans = [Span(stream, first, ("x",) * (end - first)) for stream, first, end in world.ranges]
    events = events_of(spans, world.history().unopened(), lambda: 64)
    opened = [event for event in events if isinstance(event, FeedEvent)]
    assert all(len(event.data) <= ONE_BLOCK for event in opened if isinstance(event.data, bytes))


@pytest.mark.usefixtures("patient")
def test_generated_stores_have_streams_that_batches_find_and_streams_that_they_do_not() -> None:
    batched = queried = 0
    for seed in SEEDS:
        world = generated(seed)
        in_batches(world, "events")
        batched += sum(len(op.keys) for op in world.ops if isinstance(op, BatchGet))
        queried += sum(isinstance(op, Query) for op in world.ops)
    assert min(batched, queried) > 50


Begin = Callable[[str, dict[str, int]], Steps[dict[str, reading.Cursor]]]


def full_pages_taken_for_the_last(table: str, starts: dict[str, int]) -> Steps[dict[str, reading.Cursor]]:
    """Take any first page for the only one."""
    items = yield from get_all(table, [page_key(stream, 0) for stream in starts])
    pages = [page for item in items for page in _sound(item)]
    return {page.stream: reading.cursor_at(page, starts[page.stream]) for page in pages}


def pruned_events_returned(table: str, starts: dict[str, int]) -> Steps[dict[str, reading.Cursor]]:
    """Forget what is pruned of a page."""
    cursors = yield from reading.begin_batch(table, starts)
    return {
        stream: replace(cursor, at=0, head=replace(cursor.head, low_water=0))
        for stream, cursor in cursors.items()
    }


def streams_mixed_up(table: str, starts: dict[str, int]) -> Steps[dict[str, reading.Cursor]]:
    """Give each stream the page of another."""
    cursors = yield from reading.begin_batch(table, starts)
    return dict(zip(cursors, [*[*cursors.values()][1:], *[*cursors.values()][:1]], strict=True))


def streams_lost(table: str, starts: dict[str, int]) -> Steps[dict[str, reading.Cursor]]:
    """Take streams whose first page is not the last, or is older than the next, for pruned ones."""
    cursors = yield from reading.begin_batch(table, starts)
    lost = {}
    for cursor in [*cursors.values()][:1]:
        lost = dict.fromkeys(starts, reading.cursor_at(replace(cursor.head, frames=(), version=1_000), 0))
    return {**lost, **cursors}


def _sound(item: Item) -> Sequence[Page]:
    try:
        return (read_page(item, TABLE),)
    except CorruptData:
        return ()


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "mutant",
    [full_pages_taken_for_the_last, pruned_events_returned, streams_mixed_up, streams_lost],
    ids=lambda mutant: mutant.__name__,
)
def test_a_batch_that_is_read_wrongly_makes_a_difference(
    monkeypatch: pytest.MonkeyPatch, mutant: Begin
) -> None:
    monkeypatch.setattr(Pages, "begin_batch", staticmethod(mutant))
    assert any(_differ(generated(seed)) for seed in SEEDS)


def _differ(world: World) -> bool:
    """Whether batches return other events than single reads."""
    try:
        return in_batches(world, "events") != one_by_one(world, "events")
    except (KeyError, IndexError, ValueError):
        return True
