from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import pytest

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.errors import InvalidInput
from epochal.feed.page_filling import FEWEST, MOST, PageBounds
from epochal.feed.results import FeedItem, FeedPage
from epochal.index.checkpoints import BEGINNING, Checkpoint
from epochal.model.bodies import Claim
from epochal.model.events import Event
from epochal.plan.ops import BatchGet, Get, Op, Query, Reply
from epochal.plan.values import item_size
from epochal.store.encoding import BodyCodec
from epochal.testing.stores import MemoryBodies
from tests.layouts.stores import START, Layouts, of_table

pytestmark = pytest.mark.usefixtures("one_thread")

SOURCES = tuple(START)


def size_of(item: FeedItem) -> int:
    return len(item.event.data) if item.event is not None and isinstance(item.event.data, bytes) else 1


@dataclass
class Counting(Layouts):
    """The bytes of all items that were read from the tables of events, and a clock."""

    read: int = 0
    now: float = 0.0
    a_read_takes: float = 0.0
    bodies: MemoryBodies = field(default_factory=MemoryBodies)

    def execute(self, op: Op) -> Reply:
        reply = super().execute(op)
        if isinstance(op, Get | Query | BatchGet) and op.table in ("tips", "journal", "events"):
            self.now += self.a_read_takes
            items = [reply.item] if isinstance(op, Get) else reply.items  # type: ignore[union-attr]
            self.read += sum(item_size(item) for item in items if item is not None)
        return reply

    def write(self, source: str, name: str, *sizes: int) -> None:
        """Events whose data takes so many bytes, in one append and one entry of the index."""
        bodies = [json.dumps(random.Random(size).randbytes(size).hex()[: size - 2]) for size in sizes]
        match source:
            case "tips":
                self.streams.append(name, [Event(type="T", data=body.encode()) for body in bodies])
            case "journal":
                events = [AggregateEvent(type="T", data=body.encode()) for body in bodies]
                self.aggregates.append(AggregateId(type="order", value=name), events, snapshot=b"{}")
            case _:
                self.tagged.append([Event(type="T", data=body.encode(), tags=(name,)) for body in bodies])
        self.index()

    def page(
        self,
        source: str,
        max_bytes: int,
        *,
        start: Checkpoint = BEGINNING,
        largest: int = 1_000_000,
        limit: int = 1_000,
        until: float = 100.0,
        data: bool = True,
    ) -> FeedPage:
        """A page of so many bytes; what was read before is forgotten."""
        self.read = 0
        room = PageBounds(max_bytes=max_bytes, largest=largest, size_of=size_of, until=until)
        driver = replace(self.driver, clock=lambda: self.now)
        return self.reader().on(driver).page_within(room, START[source], start=start, limit=limit, data=data)

    def pages(self, source: str, max_bytes: int, limit: int = 1_000) -> Iterator[FeedPage]:
        """All of them, each from where the one before ends."""
        start, at_tail = BEGINNING, False
        while not at_tail:
            page = self.page(source, max_bytes, start=start, limit=limit)
            yield page
            assert page.next > start
            start, at_tail = page.next, page.at_tail


@pytest.fixture
def layouts() -> Counting:
    return Counting()


def shown(items: tuple[FeedItem, ...]) -> list[int]:
    return [size_of(item) for item in items if item.event is not None]


@pytest.mark.parametrize("source", SOURCES)
def test_a_page_ends_before_the_entry_that_has_no_room_and_the_next_begins_with_it(
    layouts: Counting, source: str
) -> None:
    for k in range(3):
        layouts.write(source, f"A-{k}", 400, 400)
    found = list(layouts.pages(source, 1_700))
    assert [[item.stream[-1] for item in page.items] for page in found] == [[*"0011"], [*"22"]]
    assert [(str(page.next), page.at_tail) for page in found] == [("0@2", False), ("0@3", True)]
    assert not any(item.omitted for page in found for item in page.items)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_whatever_the_room_all_pages_together_are_the_feed(layouts: Counting, source: str) -> None:
    rng = random.Random(7)
    for k in range(20):
        layouts.write(source, f"A-{k % 4}", *(rng.randrange(10, 900) for _ in range(k % 5 + 1)))
    whole = layouts.items(source, data=True)
    for max_bytes, limit in product((1, 500, 3_000, 100_000), (1, 5, 1_000)):
        found = [item for page in layouts.pages(source, max_bytes, limit) for item in page.items]
        assert [(item.stream, item.index, item.type) for item in found] == [
            (item.stream, item.index, item.type) for item in whole
        ]
        assert all(item == known for item, known in zip(found, whole, strict=True) if not item.omitted)
        assert all(item.omitted != (item.event is not None) for item in found)


@pytest.mark.parametrize("source", SOURCES)
def test_an_entry_that_no_page_has_room_for_comes_alone_with_the_rest_of_it_omitted(
    layouts: Counting, source: str
) -> None:
    layouts.write(source, "A-0", 100)
    layouts.write(source, "A-1", 600, 600, 100)
    layouts.write(source, "A-2", 100)
    found = [
        [(item.stream[-1], item.omitted) for item in page.items] for page in layouts.pages(source, 1_000)
    ]
    assert found == [[("0", False)], [("1", False), ("1", True), ("1", True)], [("2", False)]]


def test_an_event_too_large_for_any_page_is_omitted_and_ends_none(layouts: Counting) -> None:
    layouts.write("tips", "A-0", 5_000)
    layouts.write("tips", "A-0", 300, 5_000, 300)
    page = layouts.page("tips", 1_000, largest=2_000)
    assert [item.omitted for item in page.items] == [True, False, True, False]
    assert (str(page.next), page.at_tail) == ("0@2", True)


def test_the_first_event_of_a_page_may_be_larger_than_its_room(layouts: Counting) -> None:
    layouts.write("tips", "A-0", 1_500)
    layouts.write("tips", "A-0", 10)
    found = list(layouts.pages("tips", 1_000))
    assert [shown(page.items) for page in found] == [[1_500], [10]]


def test_what_is_gone_takes_the_room_of_an_item_alone(layouts: Counting) -> None:
    layouts.write("tips", "A-0", 100, 100)
    layouts.write("tips", "A-1", *(100 for _ in range(40)))
    layouts.write("tips", "A-0", 100)
    layouts.streams.prune("A-1", 40)
    page = layouts.page("tips", 340)
    assert [item.gone for item in page.items] == [None, None, *["pruned"] * 40, None]
    assert page.at_tail


def test_a_page_without_data_ends_where_its_items_do_and_omits_nothing(layouts: Counting) -> None:
    for k in range(3):
        layouts.write("tips", f"A-{k}", *(10 for _ in range(40)))
    before = len(of_table(layouts.ops, "tips"))
    page = layouts.page("tips", 100, data=False)
    assert [(item.stream, item.event, item.omitted) for item in page.items] == [
        *[("A-0", None, False)] * 40,
        *[("A-1", None, False)] * 40,
    ]
    assert str(page.next) == "0@2"
    alone = layouts.page("tips", 10, data=False)
    assert [(item.stream, item.omitted) for item in alone.items] == [("A-0", False)] * 40
    assert len(of_table(layouts.ops, "tips")) == before


def test_bodies_in_the_bucket_stay_there(layouts: Counting) -> None:
    codec = BodyCodec(bodies=layouts.bodies)
    streams = replace(layouts.streams, codec=codec)
    streams.append("A-0", [Event(type="T", data=random.Random(1).randbytes(500_000))])
    layouts.index()
    (item,) = layouts.page("tips", 1_000).items
    assert item.event is not None
    assert isinstance(item.event.data, Claim)


# ------------------------------------------------------------------------------------------------------ what is read


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_of_large_events_a_page_reads_little_more_than_it_returns(layouts: Counting, source: str) -> None:
    for k in range(40):
        layouts.write(source, f"A-{k}", 40_000)
    page = layouts.page(source, 800_000)
    assert sum(shown(page.items)) == 800_000
    assert layouts.read < 800_000 + FEWEST * 41_000


@pytest.mark.parametrize("source", SOURCES)
def test_of_one_large_entry_a_page_reads_little_more_than_it_returns(layouts: Counting, source: str) -> None:
    for k in range(40):
        match source:
            case "tips":
                layouts.streams.append(f"A-{k}", [Event(type="T", data=random.Random(k).randbytes(40_000))])
            case "journal":
                event = AggregateEvent(type="T", data=json.dumps("x" * 39_998).encode())
                layouts.aggregates.append(AggregateId(type="order", value=str(k)), [event], snapshot=b"{}")
            case _:
                layouts.tagged.append(
                    [Event(type="T", data=json.dumps("x" * 39_998).encode(), tags=(f"a:{k}",))]
                )
    layouts.index()
    page = layouts.page(source, 800_000)
    assert [item.omitted for item in page.items] == [False] * 20 + [True] * 20
    assert layouts.read < 800_000 + FEWEST * 41_000
    assert page.at_tail


@pytest.mark.slow
def test_small_events_before_large_ones_mislead_by_a_window_at_most(layouts: Counting) -> None:
    for k in range(3):
        layouts.write("tips", f"Small-{k}", *(10 for _ in range(100)))
    for k in range(2 * MOST):
        layouts.streams.append(f"Large-{k}", [Event(type="T", data=random.Random(k).randbytes(20_000))])
    layouts.index()
    page = layouts.page("tips", 100_000)
    assert shown(page.items) == [10] * 300
    assert layouts.read < 50_000 + MOST * 21_000


def test_small_events_are_read_many_at_once(layouts: Counting) -> None:
    layouts.write("journal", "1", *(10 for _ in range(90)))
    layouts.write("journal", "1", *(10 for _ in range(90)))
    start = len(layouts.ops)
    assert len(layouts.page("journal", 100_000).items) == 180
    # Windows of 8, 128 and 44 events; a batch has 100 keys.
    assert len(of_table(layouts.ops[start:], "journal")) == 4


def test_a_page_whose_time_is_over_ends_with_what_it_has(layouts: Counting) -> None:
    for k in range(60):
        layouts.write("tips", f"A-{k}", 10)
    layouts.a_read_takes = 1.0
    page = layouts.page("tips", 100_000, until=5.0)
    assert [(item.stream, item.omitted) for item in page.items] == [("A-0", False)]
    assert (str(page.next), page.at_tail) == ("0@1", False)
    assert layouts.now == FEWEST


def test_a_page_needs_the_store_that_it_reads_from_and_a_limit(layouts: Counting) -> None:
    room = PageBounds(max_bytes=1, largest=1, size_of=size_of, until=1.0)
    with pytest.raises(InvalidInput, match="store of layout journal"):
        replace(layouts.reader(), histories=()).page_within(room, START["journal"], data=True)
    with pytest.raises(InvalidInput, match="limit"):
        layouts.reader().page_within(room, START["journal"], limit=0)
