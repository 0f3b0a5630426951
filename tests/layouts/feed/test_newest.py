"""The feed backward, and the newest items of all partitions: nothing is left out, nothing comes twice."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from epochal.errors import BeyondTheEnd, CorruptData, InvalidInput
from epochal.index.checkpoints import BEGINNING, Checkpoint, FeedPosition, is_tip, parse_position
from epochal.index.epochs import EpochLimits
from epochal.layout.registry import partition_of
from epochal.model.events import Event
from epochal.plan.ops import Delete, Put
from epochal.testing.feeds import MemoryStore
from tests.core.feed.feeds import Feeds, head, is_read, record
from tests.layouts.feed.test_reader import Where, everything, many, where
from tests.support.examples import seeds

pytestmark = pytest.mark.usefixtures("one_thread")


def backward(feeds: Feeds, limit: int, start: Checkpoint | None = None) -> list[Where]:
    """All that is before a checkpoint, page by page, each of a new reader."""
    found: list[Where] = []
    while True:
        page = feeds.reader().page(0, direction="backward", start=start, limit=limit)
        found += where(page.items)
        if page.at_tail:
            assert page.next == BEGINNING
            return found
        start = page.next


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50, 1_000])
@pytest.mark.parametrize("size", [600, 10**6], ids=["calves", "tips"])
def test_backward_everything_comes_in_the_opposite_order_whatever_the_limit(limit: int, size: int) -> None:
    feeds = many(40, entries=6, bytes=size)
    assert backward(feeds, limit) == everything(feeds)[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("entries", [1, 2, 7, 100])
def test_from_every_checkpoint_ever_given_what_is_before_it_comes_backward(entries: int) -> None:
    feeds = many(30, entries=entries)
    whole, passed = everything(feeds), list[Where]()
    assert backward(feeds, 5, BEGINNING) == []
    for page in feeds.reader().read(0, limit=1):
        passed += where(page.items)
        assert backward(feeds, 5, page.next) == passed[::-1]
    assert passed == whole


@pytest.mark.slow
@seeds(30, 8)
def test_long_epochs_of_many_items_are_read_backward(seed: int) -> None:
    rng = random.Random(seed)
    feeds = Feeds(limits=EpochLimits(entries=rng.randint(1, 200)))
    indexer = feeds.indexer()
    indexer.register()
    for k in range(rng.randint(1, 300)):
        indexer.index([record(k, head("S-1", k + 1, rng.randbytes(rng.randint(1, 900)).hex()))])
    assert backward(feeds, rng.randint(1, 80)) == everything(feeds)[::-1]


def test_a_page_backward_ends_at_the_limit_and_asks_for_no_more_than_that_takes() -> None:
    feeds = many(40)
    start = len(feeds.ops)
    page = feeds.reader().page(0, direction="backward", limit=3)
    assert 3 <= len(page.items) <= 6
    assert len(feeds.ops) - start == 3  # the series, and the Tip: once for its tail, once for the page
    assert all(map(is_read, feeds.ops[start:]))


@pytest.mark.parametrize("place", [(0, 9), (5, 0), (9, 9), (900, 0)])
def test_backward_from_beyond_the_end_is_refused(place: tuple[int, int]) -> None:
    with pytest.raises(BeyondTheEnd):
        backward(many(10, entries=3), 5, Checkpoint.of(*place))


def test_backward_an_entry_that_is_in_no_item_is_corruption() -> None:
    feeds = Feeds(limits=EpochLimits(entries=10_000))
    indexer = feeds.indexer()
    indexer.register()
    for k in range(300):
        indexer.index([record(k, head("S-1", k + 1, f"{k:900d}"))])
    items = [each for each in feeds.tables.items("index") if each["p"]["S"] == "$AppendsEpoch-0_0"]
    calves = sorted(int(each["i"]["N"]) for each in items if not is_tip(each))
    assert len(calves) > 5
    feeds.tables.execute(
        Delete(table="index", key={"p": {"S": "$AppendsEpoch-0_0"}, "i": {"N": f"{calves[3]}"}})
    )
    with pytest.raises(CorruptData, match="in no item"):
        backward(feeds, 20)


def test_calves_that_overlap_are_read_backward_once() -> None:
    feeds = Feeds(limits=EpochLimits(entries=10_000))
    indexer = feeds.indexer()
    indexer.register()
    for k in range(300):
        indexer.index([record(k, head("S-1", k + 1, f"{k:900d}"))])
    whole = everything(feeds)[::-1]
    items = [each for each in feeds.tables.items("index") if each["p"]["S"] == "$AppendsEpoch-0_0"]
    items = sorted((each for each in items if not is_tip(each)), key=lambda each: int(each["i"]["N"]))
    for one, other in zip(items[::2], items[1::2], strict=False):
        # The first holds both, and the second is there yet: as a writer that died between two steps leaves it.
        joined = {**one, "n": other["n"], "e": {"L": one["e"]["L"] + other["e"]["L"]}}
        feeds.tables.execute(Put(table="index", item={**joined, "c": {"L": one["c"]["L"] + other["c"]["L"]}}))
    assert backward(feeds, 7) == whole


def test_a_long_calf_that_a_short_one_is_within_is_read_backward_from_anywhere() -> None:
    feeds = Feeds(limits=EpochLimits(entries=10_000))
    indexer = feeds.indexer()
    indexer.register()
    for k in range(120):
        indexer.index([record(k, head("S-1", k + 1, f"{k:900d}"))])
    items = [each for each in feeds.tables.items("index") if each["p"]["S"] == "$AppendsEpoch-0_0"]
    items = sorted((each for each in items if not is_tip(each)), key=lambda each: int(each["i"]["N"]))
    one, other, *_ = items
    joined = {**one, "n": other["n"], "e": {"L": one["e"]["L"] + other["e"]["L"]}}
    feeds.tables.execute(Put(table="index", item={**joined, "c": {"L": one["c"]["L"] + other["c"]["L"]}}))
    short = {**other, "n": {"N": str(int(other["i"]["N"]) + 1)}, "e": {"L": other["e"]["L"][:1]}}
    feeds.tables.execute(Put(table="index", item={**short, "c": {"L": other["c"]["L"][:1]}}))
    for end in range(int(other["n"]["N"]) + 3):
        assert backward(feeds, 7, Checkpoint.of(0, end)) == [("S-1", k) for k in reversed(range(end))]


def test_backward_nobody_waits_at_the_beginning() -> None:
    feeds = many(3)
    page = feeds.reader().page(0, direction="backward", start=BEGINNING, wait=20.0)
    assert (page.items, page.at_tail, feeds.clock.sleeps) == ((), True, 0)


# ----------------------------------------------------------------------------------------- of all partitions


def several(seed: int) -> tuple[Feeds, list[Where]]:
    """A feed of four partitions, and its events in the order in which they were indexed."""
    rng, now = random.Random(seed), [0.0]
    feeds = Feeds(partitions=4, limits=EpochLimits(entries=rng.randint(1, 9)), now=lambda: int(now[0] * 1e9))
    indexer = feeds.indexer()
    indexer.register()
    order, reached = list[Where](), dict[str, int]()
    for k in range(rng.randint(1, 60)):
        now[0] = float(k)
        stream, count = f"{rng.choice('AB')}-{rng.randrange(9)}", rng.randint(1, 3)
        first = reached.get(stream, 0)
        reached[stream] = first + count
        indexer.index([record(k, head(stream, first + count, *"x" * count))])
        order += [(stream, first + each) for each in range(count)]
    return feeds, order


@pytest.mark.slow
@seeds(20, 8)
def test_the_newest_of_all_partitions_come_newest_first_and_go_on_to_the_beginning(seed: int) -> None:
    feeds, order = several(seed)
    for categories in (None, ["A"]):
        found, before = list[Where](), None
        while True:
            page = feeds.reader().newest(5, before=before, categories=categories)
            found += where(page.items)
            if page.at_beginning:
                break
            before = parse_position(str(page.next))
            assert before == page.next
        assert found == [each for each in order[::-1] if categories is None or each[0][0] in categories]


def test_the_newest_of_some_partitions_are_those_of_a_position() -> None:
    feeds, order = several(1)
    (first, *_) = feeds.reader().partitions()
    page = feeds.reader().newest(1_000, before={first.partition: first.tail})
    assert where(page.items) == everything(feeds)[::-1]
    assert 0 < len(page.items) < len(order)
    assert page.next == {0: BEGINNING}


def test_the_newest_of_a_partition_are_two_requests_more_than_where_it_ends() -> None:
    feeds = many(40)
    tail = feeds.reader().partitions()[0].tail
    start = len(feeds.ops)
    assert len(feeds.reader().newest(3, before={0: tail}).items) >= 3
    assert len(feeds.ops) - start == 1


def test_a_category_of_which_little_is_there_ends_a_page_with_the_time_and_goes_on() -> None:
    feeds = Feeds(limits=EpochLimits(entries=2))
    indexer = feeds.indexer()
    indexer.register()
    for k in range(40):
        indexer.index([record(k, head("Rare-1" if not k else "Often-1", k or 1, "x"))])
    before, pages = None, 0
    while True:
        page = feeds.reader().newest(5, before=before, categories=["Rare"], seconds=0.0)
        before, pages = page.next, pages + 1
        if page.items:
            break
    assert where(page.items) == [("Rare-1", 0)]
    assert pages > 10


def test_the_newest_come_with_their_events_of_every_layout() -> None:
    feed = MemoryStore()
    feed.streams.append(
        "Order-1", [Event(type="Placed", data=b'{"a":1}'), Event(type="Paid", data=b'{"b":2}')]
    )
    feed.index()
    feed.tagged.append([Event(type="Seen", data=b"{}", tags=("user:1",))])
    feed.index()
    feed.tips.append("Order-1", [Event(type="Old", data=b"{}")])
    feed.index()
    page = feed.feed.newest(10, data=True)
    assert [(each.stream, each.type) for each in page.items] == [
        ("Order-1", "Old"),
        ("$tag-user:1", "Seen"),
        ("Order-1", "Paid"),
        ("Order-1", "Placed"),
    ]
    assert [each.event.content for each in page.items if each.event] == [b"{}", b"{}", b'{"b":2}', b'{"a":1}']
    assert page.at_beginning


def test_an_empty_feed_has_no_newest_and_a_limit_below_one_is_refused() -> None:
    assert Feeds().reader().newest().items == ()
    assert Feeds().reader().newest().at_beginning
    with pytest.raises(InvalidInput, match="limit"):
        Feeds().reader().newest(0)


def test_backward_from_a_moment_comes_what_is_before_it() -> None:
    feeds, order = several(3)
    page = feeds.reader().page(0, direction="backward", start="2500-01-01T00:00Z", limit=1_000)
    assert where(page.items) == everything(feeds)[::-1]
    assert where(feeds.reader().page(0, direction="backward", start="1960-01-01T00:00Z").items) == []
    assert order


def spread(batches: int) -> tuple[MemoryStore, list[str]]:
    """Sixty appends to streams of four partitions, indexed in so many batches; their names, newest first."""
    feed = MemoryStore(options={"pages_partitions": 4})
    names = [f"Order-{number:03}" for number in range(60)]
    for number, name in enumerate(names, 1):
        feed.streams.append(name, [Event(type="Placed", data=b"{}")])
        if number % (60 // batches) == 0:
            feed.index()
    return feed, names[::-1]


@pytest.mark.parametrize("data", [True, False], ids=["events", "places"])
@pytest.mark.parametrize("batches", [1, 3, 20])
def test_the_newest_of_one_run_of_the_indexer_come_newest_first(batches: int, data: bool) -> None:
    feed, names = spread(batches)
    page = feed.feed.newest(10, data=data)
    assert [item.stream for item in page.items[:10]] == names[:10]
    assert all((item.event is not None) == data for item in page.items)


@pytest.mark.parametrize("data", [True, False], ids=["events", "places"])
def test_pages_of_the_newest_of_several_partitions_have_every_event_once(data: bool) -> None:
    feed, names = spread(3)
    found, before = list[str](), None
    while True:
        page = feed.feed.newest(7, before=before, data=data)
        of_page = [item.stream for item in page.items]
        assert of_page == sorted(of_page, reverse=True)
        found += of_page
        if page.at_beginning:
            break
        before = page.next
    assert sorted(found, reverse=True) == names


def test_the_newest_of_several_layouts_come_in_the_order_of_their_events() -> None:
    feed = MemoryStore(options={"pages_partitions": 2})
    names = [f"Order-{number}" for number in range(12)]
    for number, name in enumerate(names):
        store = feed.tips if number % 2 else feed.streams
        store.append(name, [Event(type="Placed")])
    feed.index()
    assert [item.stream for item in feed.feed.newest(5).items[:5]] == names[:-6:-1]


@pytest.mark.parametrize("dated", ["2020-01-01T00:00:00Z", "2500-01-01T00:00:00Z"])
def test_events_dated_otherwise_than_their_append_do_not_hold_back_their_neighbours(dated: str) -> None:
    feed = MemoryStore(options={"pages_partitions": 4})
    names = [f"Order-{number:03}" for number in range(60)]
    for number, name in enumerate(names):
        feed.streams.append(name, [Event(type="Placed", timestamp=None if number % 7 else dated)])
    feed.index()
    items = feed.feed.newest(60).items
    usual = [item.stream for item in items if int(item.stream[6:]) % 7]
    assert usual == [name for name in names[::-1] if int(name[6:]) % 7]
    for partition in {partition_of(name, 4, 30_000) for name in names}:
        own = [item.stream for item in items if partition_of(item.stream, 4, 30_000) == partition]
        assert own == sorted(own, reverse=True)


def test_the_newest_of_a_feed_with_removed_events_keep_their_place() -> None:
    feed, names = spread(1)
    for name in names[::5]:
        feed.streams.delete(name)
    items = feed.feed.newest(60, data=True).items
    kept = [item.stream for item in items if not item.gone]
    assert kept == [name for name in names if name not in names[::5]]
    assert {item.stream for item in items if item.gone} == {*names[::5]}


def test_beyond_a_number_of_events_entries_go_by_their_own_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochal.feed.newest.MOST_READ", 20)
    feed, names = spread(1)
    page = feed.feed.newest(60)
    assert sorted(item.stream for item in page.items) == sorted(names)


def test_a_reader_without_stores_has_the_newest_of_every_partition() -> None:
    feed, names = spread(3)
    reader = replace(feed.feed, histories=())
    found, before = list[str](), None
    while before is None or any(before.values()):
        page = reader.newest(10, before=before)
        found += [item.stream for item in page.items]
        before = page.next
    assert sorted(found, reverse=True) == names
    with pytest.raises(InvalidInput, match="data"):
        reader.newest(10, data=True)


# ------------------------------------------------------------------------------------------------- positions


def test_positions_are_compared_by_every_partition() -> None:
    a, b = Checkpoint.of(0, 3), Checkpoint.of(1, 0)
    assert FeedPosition({0: b, 1: a}).covers({0: a, 1: a})
    assert FeedPosition({0: b, 1: a}).covers({0: b})
    assert not FeedPosition({0: b}).covers({0: a, 1: a})
    assert not FeedPosition({0: a, 1: b}).covers({0: b})
    assert FeedPosition().covers({})
    assert FeedPosition().covers({4: BEGINNING})


@pytest.mark.parametrize("text", ["0", "0:", "x:0@1", "0:0@1,", "0:0@1,0:0@2", ":0@1", "-1:0@1"])
def test_what_is_no_position_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parse_position(text, "before")
    assert refusal.value.field == "before"


def test_a_position_is_read_from_its_text() -> None:
    position = FeedPosition({30_000: Checkpoint.of(2, 1), 0: BEGINNING})
    assert str(position) == "0:0@0,30000:2@1"
    assert parse_position(str(position)) == position
    assert parse_position("") == FeedPosition()
