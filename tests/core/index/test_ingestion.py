from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.errors import CorruptData
from epochal.index import ingestion, marks
from epochal.index.checkpoints import calf_key, epoch_stream, mark_name, marks_name
from epochal.index.entries import ITEM_OVERHEAD, MAX_ENTRY_BYTES, MAX_ITEMS_BYTES
from epochal.index.epochs import STANDARD, EpochLimits
from epochal.index.ingestion import (
    LEAST_SPREAD,
    MARK_ROUNDS,
    MARKS_AT_ONCE,
    MARKS_TOGETHER,
    MOST_SPREAD,
    Indexing,
    Ingested,
    Partition,
    sort_by_time,
)
from epochal.index.marks import Leaves, hash_of, write_marks
from epochal.index.wire_batch import Ids
from epochal.layout.changes import Span
from epochal.layout.healing import Heal
from epochal.model.moments import Ticks
from epochal.pages.port import heal_pages
from epochal.plan.ops import Delete, Get, Op, Put, Query, Update
from epochal.plan.values import number
from tests.core.feed.feeds import Feeds, is_leaf, is_read, no_fault, spans_of, streams_of

HEAL = heal_pages("streams")


def ingest(feeds: Feeds, partition: Partition, spans: list[Span], heal: Heal = HEAL) -> Ingested:
    serial = iter(range(1_000_000))

    def ids() -> Ids:
        fresh = random.Random(f"{len(feeds.ops)} {next(serial)}").randbytes(16)
        return Ids(etag=fresh.hex(), append_id=fresh, timestamp="2013-01-01T00:00:00.0000000+00:00")

    indexing = Indexing(table="index", heal=heal, ids=ids, limits=feeds.limits)
    return feeds.driver.run(indexing.ingest(partition, spans))


def since(feeds: Feeds, start: int) -> list[Op]:
    return feeds.ops[start:]


def writes(ops: list[Op]) -> list[Op]:
    return [op for op in ops if not is_read(op)]


def incompressible(rng: random.Random) -> str:
    return "".join(map(chr, rng.choices(range(0x4E00, 0x9000), k=170)))


# ------------------------------------------------------------------------------------------------------------ requests


def test_a_batch_is_one_entry_and_one_write_once_the_state_is_held() -> None:
    feeds, partition = Feeds(), Partition(number=0)
    ingest(feeds, partition, spans_of(["A:0:a", "B:0:b"]))
    start = len(feeds.ops)
    assert ingest(feeds, partition, spans_of(["A:1:b", "B:1:c", "A:2:c"])) == Ingested(events=3)
    (only,) = since(feeds, start)
    assert isinstance(only, Update)
    assert streams_of([only]) == [epoch_stream(0, 0)]
    assert feeds.feed() == [
        ("A", 0, "a"),
        ("B", 0, "b"),
        ("A", 1, "b"),
        ("B", 1, "c"),
        ("A", 2, "c"),
    ]


def test_a_batch_that_is_indexed_already_writes_nothing() -> None:
    feeds, partition = Feeds(), Partition(number=0)
    ingest(feeds, partition, spans_of(["A:0:ab"]))
    start = len(feeds.ops)
    assert ingest(feeds, partition, spans_of(["A:0:a", "A:1:b"])) == Ingested()
    assert since(feeds, start) == []


def test_streams_that_neither_epoch_knows_cost_the_reads_of_their_leaves() -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)
    ingest(feeds, partition, spans_of(["A:0:a"]))
    ingest(feeds, partition, spans_of(["A:1:a"]))
    feeds.limits, start = STANDARD, len(feeds.ops)
    ingest(feeds, partition, [Span(f"S-{k}", 0, ("a",)) for k in range(250)])
    read, write = since(feeds, start)
    assert isinstance(read, Query)
    assert read.consistent
    assert read.partition == ("p", {"S": marks_name(0)})
    assert isinstance(write, Put)


def test_a_chain_of_two_epochs_has_no_marks_to_read() -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)
    ingest(feeds, partition, spans_of(["A:0:a"]))
    feeds.limits, start = STANDARD, len(feeds.ops)
    ingest(feeds, partition, [Span(f"S-{k}", 0, ("a",)) for k in range(250)])
    assert not any(is_read(op) for op in since(feeds, start))


# ------------------------------------------------------------------------------------------------------------- writers


def test_who_meets_others_looks_before_the_next_write_and_who_does_not_writes_at_once() -> None:
    feeds, one, other = Feeds(), Partition(number=0), Partition(number=0)
    ingest(feeds, one, spans_of(["A:0:a"]))
    ingest(feeds, other, spans_of(["B:0:b"]))
    ingest(feeds, one, spans_of(["A:1:a"]))
    ingest(feeds, other, spans_of(["B:1:b"]))
    start = len(feeds.ops)
    ingest(feeds, one, spans_of(["A:2:a"]))
    assert [type(op) for op in since(feeds, start)] == [Get, Update], "nothing is refused"
    start = len(feeds.ops)
    for index in (3, 4):
        ingest(feeds, one, spans_of([f"A:{index}:a"]))
    assert [type(op) for op in since(feeds, start)] == [Get, Update, Update], "the other has gone"


def test_marks_are_read_before_the_look_and_not_again_while_the_epoch_lasts() -> None:
    feeds, one = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)
    for index in range(3):
        ingest(feeds, one, spans_of([f"A:{index}:a"]))
    feeds.limits, one.shared = STANDARD, True
    start = len(feeds.ops)
    ingest(feeds, one, spans_of(["N:0:n"]))
    assert [type(op) for op in since(feeds, start) if is_read(op)] == [Query, Get]


def test_refusals_spread_the_tries_and_calm_comes_back() -> None:
    partition = Partition(number=0)
    spreads = []
    for _ in range(6):
        partition.refused()
        spreads.append(partition.spread)
    assert spreads == [
        LEAST_SPREAD,
        2 * LEAST_SPREAD,
        4 * LEAST_SPREAD,
        8 * LEAST_SPREAD,
        MOST_SPREAD,
        MOST_SPREAD,
    ]
    for _ in range(4):
        partition.calm()
    assert partition.spread == 0.0


def test_a_refused_write_waits_for_a_part_of_the_spread_and_looks_again() -> None:
    feeds = Feeds()
    one, other = feeds.indexer(), feeds.indexer()
    feeds.append("A-1", "a")
    one.index(feeds.records())
    feeds.append("B-1", "b")
    other.index(feeds.records())
    feeds.append("C-1", "c")
    start, began = len(feeds.ops), feeds.clock()
    one.index(feeds.records(2))
    assert feeds.clock() - began == LEAST_SPREAD
    assert [type(op) for op in feeds.ops[start:]] == [Update, Get, Update]
    assert feeds.feed() == [("A-1", 0, "a"), ("B-1", 0, "b"), ("C-1", 0, "c")]


def test_a_new_process_reads_the_series_the_active_epoch_and_its_predecessor_and_no_more() -> None:
    feeds = Feeds(limits=EpochLimits(entries=1))
    partition = Partition(number=0)
    for index in range(8):
        ingest(feeds, partition, spans_of([f"A:{index}:a"]))
    feeds.limits = EpochLimits()
    ingest(feeds, partition, spans_of(["A:8:a"]))
    start = len(feeds.ops)
    ingest(feeds, Partition(number=0), spans_of(["A:9:a"]))
    assert streams_of(since(feeds, start)) == [
        "$AppendsIndex-0",
        epoch_stream(0, 7),
        epoch_stream(0, 8),
        epoch_stream(0, 8),
    ]


def test_closing_an_epoch_does_not_read_it_again() -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=3)), Partition(number=0)
    for index in range(2):
        ingest(feeds, partition, spans_of([f"A:{index}:a"]))
    start = len(feeds.ops)
    ingest(feeds, partition, spans_of(["A:2:a"]))
    found = since(feeds, start)
    assert streams_of(writes(found)) == [epoch_stream(0, 0), "$AppendsIndex-0"]
    assert epoch_stream(0, 0) not in streams_of(op for op in found if is_read(op))
    assert partition.state.previous is not None
    assert partition.state.previous.next == {"A": 3}
    assert partition.state.active.number == 1


def test_a_refusal_brings_what_others_have_written_and_nothing_is_read_again() -> None:
    feeds = Feeds()
    one, two = Partition(number=0), Partition(number=0)
    for index in range(40):
        ingest(feeds, one, [Span(f"S-{index}", 0, tuple("abcdefgh"))])
    ingest(feeds, two, spans_of(["A:0:a"]))
    start = len(feeds.ops)
    assert ingest(feeds, one, spans_of(["A:0:ab"])) == Ingested(events=1)
    kinds = [type(op) for op in since(feeds, start)]
    assert kinds == [Update, Update]
    assert feeds.feed()[-2:] == [("A", 0, "a"), ("A", 1, "b")]


# ------------------------------------------------------------------------------------------------------------- closing


def test_the_last_entry_and_closed_are_one_append() -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=2)), Partition(number=0)
    ingest(feeds, partition, spans_of(["A:0:a"]))
    before = feeds.tip(epoch_stream(0, 0))
    ingest(feeds, partition, spans_of(["A:1:b"]))
    after = feeds.tip(epoch_stream(0, 0))
    assert before is not None
    assert after is not None
    assert before["n"] == {"N": "1"}
    assert after["n"] == {"N": "3"}
    assert after["a"] == {"N": "2"}
    assert after["c"]["L"][-2:] == [{"S": "Ingested"}, {"S": "Closed"}]


def test_an_epoch_closes_by_bytes() -> None:
    feeds, partition = Feeds(limits=EpochLimits(bytes=2_000)), Partition(number=0)
    for index in range(30):
        ingest(feeds, partition, [Span(f"S-{index}", 0, ("SomethingHappened",))])
    assert partition.state.active.number in range(1, 4)
    assert partition.state.previous is not None
    assert 2_000 <= partition.state.previous.size < 2_400


def test_an_epoch_closes_by_streams() -> None:
    feeds, partition = Feeds(limits=EpochLimits(streams=10)), Partition(number=0)
    ingest(feeds, partition, [Span(f"S-{k}", 0, ("a",)) for k in range(10)])
    assert partition.state.active.number == 1
    assert partition.state.active.next == {}


@pytest.mark.parametrize("entries", [7, 45], ids=["several epochs", "an epoch with calves"])
def test_what_is_held_equals_what_a_new_process_reads(entries: int) -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=entries)), Partition(number=0)
    rng = random.Random(5)
    following = dict.fromkeys("ABCDE", 0)
    for _ in range(60):
        stream, count = rng.choice("ABCDE"), rng.randint(1, 3)
        ingest(feeds, partition, [Span(stream, following[stream], ("x",) * count)])
        following[stream] += count
        fresh = Partition(number=0)
        ingest(feeds, fresh, [])
        held, read = partition.state, fresh.state
        assert held.active.number == read.active.number
        assert (held.active.next, held.active.version) == (read.active.next, read.active.version)
        assert (list(held.active.next), held.active.marked) == (list(read.active.next), read.active.marked)
        assert partition.forgotten == fresh.forgotten
        assert held.active.size == read.active.size
        assert (held.previous is None) == (read.previous is None)
        if held.previous is not None and read.previous is not None:
            assert held.previous.next == read.previous.next
            assert read.previous.closed


def test_what_is_held_is_two_epochs_however_many_there_have_been() -> None:
    feeds, partition = Feeds(limits=EpochLimits(streams=50)), Partition(number=0)
    for k in range(40):
        ingest(feeds, partition, [Span(f"S-{k}-{j}", 0, ("a",)) for j in range(25)])
    assert partition.state.active.number == 20
    assert partition.state.previous is not None
    assert len(partition.state.previous.next) + len(partition.forgotten) <= 100


@pytest.mark.proof
def test_limits_hold_to_within_a_batch_and_requests_stay_flat_however_many_streams_are_new() -> None:
    feeds, partition = Feeds(limits=EpochLimits(streams=4_000)), Partition(number=0)
    asked, held = [], []
    for k in range(20):
        start = len(feeds.ops)
        ingest(feeds, partition, [Span(f"S-{k}-{j}", 0, ("a",)) for j in range(1_000)])
        asked.append(len(feeds.ops) - start)
        held.append(len(partition.state.active.next))
    assert partition.state.active.number == 5
    assert held == [1_000, 2_000, 3_000, 0] * 5
    # Marks read and written; the entry; the series, and the next epoch. Two of them may calve.
    assert max(asked) <= 10 + 1_000 + 6


def test_a_process_that_finds_the_series_behind_walks_on_to_the_active_epoch() -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)

    def forget_the_series(op: Op) -> None:
        if isinstance(op, Put | Update) and "$AppendsIndex-0" in streams_of([op]):
            raise KeyboardInterrupt

    for index in range(5):
        feeds.fault = forget_the_series
        with pytest.raises(KeyboardInterrupt):
            ingest(feeds, Partition(number=0), spans_of([f"A:{index}:a"]))
    feeds.fault = no_fault
    assert feeds.tip("$AppendsIndex-0") is None
    ingest(feeds, partition, spans_of(["A:5:a"]))
    assert [index for _, index, _ in feeds.feed()] == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_process_that_slept_through_many_epochs_goes_straight_to_where_the_others_are() -> None:
    feeds, sleeper = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)
    ingest(feeds, sleeper, spans_of(["A:0:a"]))
    awake = Partition(number=0)
    for index in range(1, 200):
        ingest(feeds, awake, spans_of([f"A:{index}:a"]))
    start = len(feeds.ops)
    assert ingest(feeds, sleeper, spans_of(["A:198:aaa"])) == Ingested(events=1)
    assert len([op for op in since(feeds, start) if is_read(op)]) <= 10
    assert [index for _, index, _ in feeds.feed()] == list(range(201))
    fresh = Partition(number=0)
    ingest(feeds, fresh, [])
    assert (fresh.state.active.number, fresh.state.active.next) == (201, {})
    assert sleeper.state.active.number == fresh.state.active.number
    assert sleeper.state.previous is not None
    assert sleeper.state.previous.next == {"A": 201}


def test_a_sleeper_walks_on_where_the_series_is_behind_the_epochs() -> None:
    feeds, sleeper = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)
    ingest(feeds, sleeper, spans_of(["A:0:a"]))

    def forget_the_series(op: Op) -> None:
        if isinstance(op, Put | Update) and "$AppendsIndex-0" in streams_of([op]):
            raise KeyboardInterrupt

    for index in range(1, 6):
        feeds.fault = forget_the_series
        with pytest.raises(KeyboardInterrupt):
            ingest(feeds, Partition(number=0), spans_of([f"A:{index}:a"]))
    feeds.fault = no_fault
    assert ingest(feeds, sleeper, spans_of(["A:5:ab"])) == Ingested(events=1)
    assert [index for _, index, _ in feeds.feed()] == list(range(7))


# --------------------------------------------------------------------------------------------------------------- marks


def test_marks_are_written_before_closed_for_what_the_epoch_did_not_meet() -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)
    ingest(feeds, partition, spans_of(["A:0:ab", "B:0:c", "C:0:d"]))
    assert feeds.marks() == {}
    start = len(feeds.ops)
    ingest(feeds, partition, spans_of(["B:1:d"]))
    written = streams_of(writes(since(feeds, start)))
    assert written.index(epoch_stream(0, 1)) > written.index(marks_name(0))
    assert feeds.marks()["0_A"] == 2
    assert feeds.marks()["0_C"] == 1


def test_a_stream_that_comes_back_after_two_rollovers_goes_on_from_its_mark() -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)
    ingest(feeds, partition, spans_of(["A:0:ab"]))
    for index in range(4):
        ingest(feeds, partition, spans_of([f"B:{index}:x"]))
    start = len(feeds.ops)
    assert ingest(feeds, partition, spans_of(["A:0:ab"])) == Ingested()
    assert [type(op) for op in since(feeds, start)] == [Query]
    assert ingest(feeds, partition, spans_of(["A:1:bc"])) == Ingested(events=1)
    assert [item for item in feeds.feed() if item[0] == "A"] == [("A", 0, "a"), ("A", 1, "b"), ("A", 2, "c")]


def test_what_was_read_of_marks_holds_for_one_epoch() -> None:
    """A stream that had none is marked two epochs later, by this process or by another."""
    feeds, one, other = Feeds(limits=EpochLimits(entries=1)), Partition(number=0), Partition(number=0)
    for stream in ("A", "Mine", "Theirs"):
        feeds.append(stream, *"abcdefghij")
    for index in range(3):
        ingest(feeds, one, spans_of([f"A:{index}:a"]))
    ingest(feeds, one, spans_of(["Mine:0:a"]))
    ingest(feeds, other, spans_of(["Theirs:0:a"]))
    for index in (3, 4, 5):
        ingest(feeds, other, spans_of([f"A:{index}:a"]))
    for stream in ("Mine", "Theirs"):
        assert ingest(feeds, one, spans_of([f"{stream}:1:b"])) == Ingested(events=1)
    places = [(stream, index) for stream, index, _ in feeds.feed()]
    assert len(places) == len(set(places))


def test_marks_of_the_form_before_count_beside_leaves_that_an_indexer_begins() -> None:
    feeds = Feeds(limits=EpochLimits(entries=1))
    feeds.append("Old", *"ab")
    for place in ("Old:0:a", "A:0:a", "A:1:b"):
        ingest(feeds, Partition(number=0), spans_of([place]))
    (leaf,) = filter(is_leaf, feeds.tables.items("index"))
    feeds.tables.execute(Delete(table="index", key={name: leaf[name] for name in ("p", "i")}))
    mark = {**calf_key(mark_name(0, "Old"), 0), "n": number(1)}
    feeds.tables.execute(Put(table="index", item=mark))
    for place in ("B:0:a", "A:2:c", "A:3:d"):
        ingest(feeds, Partition(number=0), spans_of([place]))
    assert feeds.marks()["0_B"] == 1
    assert "0_Old" not in feeds.marks()
    assert ingest(feeds, Partition(number=0), spans_of(["Old:1:b"])) == Ingested(events=1)


def test_a_mark_is_never_lowered() -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)
    ingest(feeds, partition, spans_of(["A:0:ab"]))
    feeds.driver.run(write_marks("index", 0, Leaves(), [("A", 9)]))
    ingest(feeds, partition, spans_of(["B:0:x"]))
    assert feeds.marks()["0_A"] == 9


def test_marks_are_spread_over_the_life_of_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingestion, "MARKS_TOGETHER", 1)
    feeds, partition = Feeds(limits=EpochLimits(entries=10)), Partition(number=0)
    ingest(feeds, partition, [Span(f"S-{k}", 0, ("a",)) for k in range(100)])
    feeds.limits = EpochLimits(entries=1)
    ingest(feeds, partition, spans_of(["A:0:a"]))
    feeds.limits = EpochLimits(entries=10)
    for index in range(1, 11):
        before = len(feeds.marks())
        ingest(feeds, partition, spans_of([f"A:{index}:a"]))
        assert 8 <= len(feeds.marks()) - before <= 13
    assert feeds.marks() == {f"0_S-{k}": 1 for k in range(100)}
    assert partition.state.active.number == 2


def test_closing_waits_for_marks_that_one_entry_cannot_bring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingestion, "MARKS_AT_ONCE", 500)
    feeds, partition = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)
    streams = [f"S-{k}" for k in range(1_001)]
    ingest(feeds, partition, [Span(stream, 0, ("a",)) for stream in streams])
    reached = []
    for index in range(3):
        ingest(feeds, partition, spans_of([f"A:{index}:a"]))
        reached.append((partition.state.active.number, len(feeds.marks())))
    assert reached == [(1, 500), (1, 1_000), (2, 1_001)]
    assert feeds.marks() == {f"0_{stream}": 1 for stream in streams}


def test_an_epoch_within_the_standard_limits_never_waits_for_marks() -> None:
    share = MAX_ENTRY_BYTES / STANDARD.bytes
    most_streams = STANDARD.streams + MAX_ITEMS_BYTES // ITEM_OVERHEAD
    assert (share + 1 / MARK_ROUNDS) * most_streams + 1 <= MARKS_AT_ONCE


def test_few_marks_are_written_once_in_an_epoch_whatever_its_entries() -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=100)), Partition(number=0)
    ingest(feeds, partition, [Span(f"S-{k}", 0, ("a",)) for k in range(MARKS_TOGETHER - 1)])
    start = len(feeds.ops)
    for index in range(99 + 100):
        ingest(feeds, partition, spans_of([f"A:{index}:a"]))
    assert partition.state.active.number == 2
    assert streams_of(writes(since(feeds, start))).count(marks_name(0)) == 1


@pytest.mark.slow
def test_marks_are_written_so_many_times_in_an_epoch_at_most() -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=100)), Partition(number=0)
    ingest(feeds, partition, [Span(f"S-{k}", 0, ("a",)) for k in range(MARK_ROUNDS * MARKS_TOGETHER)])
    for index in range(99):
        ingest(feeds, partition, spans_of([f"A:{index}:a"]))
    marked = set[int]()
    for index in range(99, 199):
        ingest(feeds, partition, spans_of([f"A:{index}:a"]))
        marked.add(partition.state.active.marked)
    assert MARK_ROUNDS <= len(marked) <= MARK_ROUNDS + 1


@pytest.mark.slow
def test_leaves_are_written_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    feeds, partition = Feeds(limits=EpochLimits(entries=1)), Partition(number=0)
    ingest(feeds, partition, [Span(f"S-{k}", 0, ("a",)) for k in range(4_000)])
    ingest(feeds, partition, [Span(f"T-{k}", 0, ("a",)) for k in range(4_000)])
    leaves = sum(map(is_leaf, feeds.tables.items("index")))
    assert leaves > 8
    all_under_way = threading.Barrier(leaves)

    def wait_for_the_others(op: Op) -> None:
        if not is_read(op) and marks_name(0) in streams_of([op]):
            all_under_way.wait(timeout=120)

    feeds.fault, feeds.at_once = wait_for_the_others, leaves
    monkeypatch.setattr(marks, "LEAF", 10_000)
    ingest(feeds, partition, spans_of(["A:0:a"]))
    assert len(feeds.marks()) == 8_000


@pytest.mark.slow
def test_what_one_process_has_marked_no_other_marks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingestion, "MARKS_TOGETHER", 1)
    feeds, one = Feeds(limits=EpochLimits(streams=100)), Partition(number=0)
    ingest(feeds, one, [Span(f"S-{k}", 0, ("a",)) for k in range(100)])
    ingest(feeds, one, [Span(f"T-{k}", 0, ("a",)) for k in range(60)])
    before = feeds.marks()
    assert len(before) == 60
    another = Partition(number=0)
    ingest(feeds, another, [Span(f"U-{k}", 0, ("a",)) for k in range(10)])
    in_order = sorted((f"S-{k}" for k in range(100)), key=hash_of)
    assert [stream for stream in in_order if f"0_{stream}" in feeds.marks().keys() - before] == in_order[
        60:68
    ]
    assert another.state.active.marked == 68
    ingest(feeds, one, [Span(f"V-{k}", 0, ("a",)) for k in range(30)])
    assert feeds.marks() == {f"0_S-{k}": 1 for k in range(100)}
    assert one.state.active.number == 2


def test_marks_that_a_process_died_of_are_written_by_the_next() -> None:
    feeds = Feeds(limits=EpochLimits(streams=10))
    ingest(feeds, Partition(number=0), [Span(f"S-{k}", 0, ("a",)) for k in range(10)])

    def die_at_the_entry(op: Op) -> None:
        if isinstance(op, Put | Update) and epoch_stream(0, 1) in streams_of([op]):
            raise KeyboardInterrupt

    feeds.fault = die_at_the_entry
    with pytest.raises(KeyboardInterrupt):
        ingest(feeds, Partition(number=0), [Span(f"T-{k}", 0, ("a",)) for k in range(10)])
    feeds.fault, start = no_fault, len(feeds.ops)
    ingest(feeds, Partition(number=0), [Span(f"U-{k}", 0, ("a",)) for k in range(10)])
    assert marks_name(0) not in streams_of(writes(since(feeds, start))), (
        "they are there, so nothing is raised"
    )
    assert feeds.marks() == {f"0_S-{k}": 1 for k in range(10)}


def test_a_process_that_takes_over_marks_all_of_the_predecessor_before_it_closes() -> None:
    feeds = Feeds(limits=EpochLimits(entries=1))
    ingest(feeds, Partition(number=0), [Span(f"S-{k}", 0, ("a",)) for k in range(5)])
    feeds.limits = EpochLimits(entries=2)
    ingest(feeds, Partition(number=0), spans_of(["A:0:a"]))
    ingest(feeds, Partition(number=0), spans_of(["A:1:a"]))
    assert {f"0_S-{k}" for k in range(5)} <= feeds.marks().keys()


# ---------------------------------------------------------------------------------------------------------------- gaps


def test_a_gap_is_read_from_the_store_and_written_before_what_follows_it() -> None:
    feeds, partition = Feeds(), Partition(number=0)
    feeds.append("A-1", "a", "b")
    feeds.append("A-1", "c")
    feeds.append("A-1", "d")
    assert ingest(feeds, partition, spans_of(["A-1:3:d"])) == Ingested(events=4, healed=3)
    assert feeds.feed() == [("A-1", 0, "a"), ("A-1", 1, "b"), ("A-1", 2, "c"), ("A-1", 3, "d")]


def test_what_the_store_has_pruned_is_counted_and_not_looked_for() -> None:
    feeds, partition = Feeds(), Partition(number=0)
    feeds.append("A-1", *"abcdef")
    feeds.streams.prune("A-1", 4)
    assert ingest(feeds, partition, spans_of(["A-1:5:f"])) == Ingested(events=2, healed=1, pruned=4)
    assert feeds.feed() == [("A-1", 4, "e"), ("A-1", 5, "f")]


def test_a_stream_that_is_gone_from_the_store_does_not_hold_up_its_last_record() -> None:
    feeds, partition = Feeds(), Partition(number=0)
    assert ingest(feeds, partition, spans_of(["A-1:2:c"])) == Ingested(events=1, pruned=2)


@pytest.mark.slow
def test_a_gap_is_healed_out_of_pages_and_counted_once_even_when_the_write_is_refused() -> None:
    feeds, partition, other = Feeds(), Partition(number=0), Partition(number=0)
    for index in range(300):
        feeds.append("A-1", f"T{index}")
    assert sum(item["p"]["S"] == "A-1" for item in feeds.tables.items("streams")) > 1
    ingest(feeds, partition, spans_of(["B:0:b"]))
    ingest(feeds, other, spans_of(["B:1:b"]))
    assert ingest(feeds, partition, [Span("A-1", 299, ("T299",))]) == Ingested(events=300, healed=299)
    assert [kind for stream, _, kind in feeds.feed() if stream == "A-1"] == [f"T{k}" for k in range(300)]


@pytest.mark.slow
def test_a_gap_larger_than_an_entry_is_read_once_and_written_as_several() -> None:
    feeds, partition = Feeds(), Partition(number=0)
    rng = random.Random(6)
    for _ in range(10):
        feeds.append("A-1", *(incompressible(rng) for _ in range(150)))
    feeds.append("A-1", "last")
    start = len(feeds.ops)
    assert ingest(feeds, partition, [Span("A-1", 1_500, ("last",))]) == Ingested(events=1_501, healed=1_500)
    on_source = [op for op in since(feeds, start) if getattr(op, "table", "") == "streams"]
    assert len([op for op in on_source if isinstance(op, Query)]) <= 3
    assert len(writes(since(feeds, start))) >= 2
    sizes = [len(event["M"]["d"]["B"]) for item in feeds.tables.items("index") for event in item["e"]["L"]]
    assert max(sizes) <= MAX_ENTRY_BYTES
    assert [index for _, index, _ in feeds.feed()] == list(range(1_501))


@pytest.mark.slow
def test_a_batch_larger_than_an_entry_survives_a_roll_over_in_its_middle() -> None:
    feeds, partition = Feeds(limits=EpochLimits(bytes=250_000)), Partition(number=0)
    rng = random.Random(7)
    spans = [Span(f"S-{k}", 0, tuple(incompressible(rng) for _ in range(60))) for k in range(40)]
    assert ingest(feeds, partition, spans) == Ingested(events=2_400)
    assert partition.state.active.number == 2
    assert [(stream, index) for stream, index, _ in feeds.feed()] == [
        (f"S-{k}", index) for k in range(40) for index in range(60)
    ]


def test_a_stream_that_cannot_be_healed_is_named_and_its_neighbours_go_on() -> None:
    feeds, partition = Feeds(), Partition(number=0)
    feeds.append("A-1", "a")
    (sound,) = feeds.tables.items("streams")
    feeds.tables.execute(Put(table="streams", item={**sound, "n": number(9)}))
    batch = spans_of(["B-1:0:b", "A-1:0:a", "A-1:8:i", "A-1:9:j", "B-1:1:b"])
    ingested = ingest(feeds, partition, batch)
    assert (ingested.events, ingested.healed) == (3, 0)
    assert set(ingested.unhealed) == {"A-1"}
    assert ingested.unhealed["A-1"].index == 1
    assert isinstance(ingested.unhealed["A-1"].cause, CorruptData)
    assert feeds.feed() == [("B-1", 0, "b"), ("A-1", 0, "a"), ("B-1", 1, "b")]


def test_a_stream_is_healed_as_soon_as_its_store_is_sound_again() -> None:
    feeds, partition = Feeds(), Partition(number=0)
    feeds.append("A-1", "a", "b")
    (sound,) = feeds.tables.items("streams")
    feeds.tables.execute(Put(table="streams", item={**sound, "n": number(9)}))
    assert ingest(feeds, partition, spans_of(["A-1:1:b"])).unhealed
    feeds.tables.execute(Put(table="streams", item=sound))
    feeds.append("A-1", "c")
    assert ingest(feeds, partition, spans_of(["A-1:2:c"])) == Ingested(events=3, healed=2)


def test_a_foreign_event_in_an_epoch_stops_its_partition_and_says_what_it_is() -> None:
    feeds = Feeds()
    ingest(feeds, Partition(number=0), spans_of(["A:0:a"]))
    tip = feeds.tip(epoch_stream(0, 0))
    assert tip is not None
    feeds.tables.execute(Put(table="index", item={**tip, "c": {"L": [{"S": "OrderPlaced"}]}}))
    with pytest.raises(CorruptData, match="OrderPlaced"):
        ingest(feeds, Partition(number=0), spans_of(["A:1:b"]))


@pytest.mark.parametrize(
    ("found", "healed_at", "written", "expected"),
    [
        # A gap before B:1 holds a write that was made before A:1 was.
        (
            ["A:0:a", "A:1:a", "B:0:x", "B:1:y"],
            {2: 15},
            {("A", 1): 10, ("A", 2): 20, ("B", 2): 30},
            "A0 B0 A1 B1",
        ),
        # A stream that was only touched: what is healed of it goes among the others.
        (["A:0:x", "A:1:y", "B:0:a", "B:1:b"], {0: 5, 1: 25}, {("B", 1): 10, ("B", 2): 30}, "A0 B0 A1 B1"),
        # What is healed is never after what its stream goes on with, whatever its time.
        (
            ["A:0:a", "B:0:x", "B:1:y", "C:0:c"],
            {1: 99},
            {("A", 1): 1, ("B", 2): 2, ("C", 1): 3},
            "A0 B0 B1 C0",
        ),
        # Nor before what its stream has had.
        (["A:0:a", "B:0:x", "B:1:y"], {2: 0}, {("A", 1): 1, ("B", 1): 2}, "A0 B0 B1"),
        # Others stay in the order of their shard, whatever their times.
        (["A:0:a", "B:0:b", "C:0:x"], {2: 5}, {("A", 1): 9, ("B", 1): 1}, "C0 A0 B0"),
        # Times that run backwards do not turn a stream round.
        (["A:0:x", "A:1:y", "B:0:b"], {0: 30, 1: 10}, {("B", 1): 20}, "B0 A0 A1"),
        # One of the very time of another was not written before it, so it comes after it, and so do several.
        (["A:0:x", "B:0:b"], {0: 20}, {("B", 1): 20}, "B0 A0"),
        (["A:0:x", "B:0:b", "C:0:c"], {0: 20}, {("B", 1): 20, ("C", 1): 20}, "B0 C0 A0"),
        (["A:0:x", "C:0:x", "B:0:b"], {0: 20, 1: 19}, {("B", 1): 20}, "C0 B0 A0"),
        # Where the others have no times, what is healed comes after them.
        (["A:0:x", "B:0:b"], {0: 30}, {}, "B0 A0"),
    ],
)
def test_what_is_healed_is_placed_by_its_time_among_what_was_told(
    found: list[str], healed_at: dict[int, Ticks], written: dict[tuple[str, int], Ticks], expected: str
) -> None:
    placed = sort_by_time(spans_of(found), healed_at, written)
    assert " ".join(f"{span.stream}{span.index}" for span in placed) == expected


@given(st.data())
def test_placing_what_is_healed_loses_nothing_and_keeps_the_order_of_streams_and_of_shards(
    data: st.DataObject,
) -> None:
    reached = dict.fromkeys("ABC", 0)
    found: list[Span] = []
    for stream in data.draw(st.lists(st.sampled_from("ABC"), max_size=12)):
        found.append(Span(stream, reached[stream], ("x",)))
        reached[stream] += 1
    times = st.integers(1, 9).map(Ticks)
    healed_at = data.draw(st.dictionaries(st.integers(0, max(0, len(found) - 1)), times))
    healed_at = {place: time for place, time in healed_at.items() if place < len(found)}
    told = [span for place, span in enumerate(found) if place not in healed_at]
    written = {(span.stream, span.next): data.draw(times) for span in told}
    placed = sort_by_time(found, healed_at, written)
    assert sorted(placed) == sorted(found)
    assert [span for span in placed if span in told] == told
    for stream in "ABC":
        mine = [span.index for span in placed if span.stream == stream]
        assert mine == sorted(mine)
