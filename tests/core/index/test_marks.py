from __future__ import annotations

import hashlib
import random
from itertools import combinations
from typing import Any

import pytest

from epochal.errors import CorruptData
from epochal.index import marks
from epochal.index.checkpoints import calf_key, mark_name, marks_name
from epochal.index.marks import (
    FLOOR,
    HASH,
    LEAF,
    PLACES,
    Leaf,
    Leaves,
    begin_marks,
    decode_leaf,
    hash_of,
    hash_place,
)
from epochal.plan.failures import Lost
from epochal.plan.ops import BatchGet, Delete, Op, Put, Query, Transact
from epochal.plan.values import Item, number
from tests.core.feed.feeds import Feeds, is_leaf, is_read, no_fault

MANY = [(f"Order-{k}", k + 1) for k in range(5_000)]


def write(
    feeds: Feeds, some: list[tuple[str, int]], leaves: Leaves | None = None, partition: int = 0
) -> None:
    feeds.driver.run(marks.write_marks("index", partition, leaves or Leaves(), some, single=False))


def read(
    feeds: Feeds, streams: list[str], leaves: Leaves | None = None, partition: int = 0
) -> dict[str, int]:
    return feeds.driver.run(marks.read_marks("index", partition, leaves or Leaves(), streams))


def stored(feeds: Feeds) -> list[Leaf]:
    return [decode_leaf(item) for item in feeds.tables.items("index") if is_leaf(item)]


def check_ranges(leaves: list[Leaf]) -> None:
    """Leaves follow each other from the first place to the last, and each has only what is in its range."""
    at = 0
    for leaf in sorted(leaves, key=lambda leaf: leaf.start):
        assert leaf.start == at
        assert all(leaf.start <= hash_place(hashed) < leaf.end for hashed in leaf.marks())
        at = leaf.end
    assert at == PLACES


# ---------------------------------------------------------------------------------------------------------- the leaves


@pytest.mark.parametrize(("start", "end"), list(combinations(range(9), 2)))
def test_a_leaf_that_is_kept_replaces_those_that_it_overlaps_and_no_other(start: int, end: int) -> None:
    leaves = Leaves()
    others = [Leaf(start=each, end=each + 2, hashes=bytes(HASH), nexts=b"1") for each in (0, 2, 6)]
    for each in (others[1], others[0], others[2]):
        leaves.keep(each)
    kept = Leaf(start=start, end=end, hashes=bytes(2 * HASH), nexts=b"12")
    leaves.keep(kept)
    apart = [each for each in others if each.end <= start or end <= each.start]
    assert leaves.by_start == {each.start: each for each in (*apart, kept)}
    assert leaves.starts == sorted(leaves.by_start)
    assert leaves.size == sum(each.size for each in (*apart, kept))


# ------------------------------------------------------------------------------------------------------------ the marks


def test_marks_are_read_back_by_stream_and_unknown_streams_have_none() -> None:
    feeds = Feeds()
    write(feeds, [("A-1", 5), ("B-1", 7)], partition=3)
    assert read(feeds, ["B-1", "C-1", "A-1"], partition=3) == {"A-1": 5, "B-1": 7}


def test_marks_belong_to_their_partition() -> None:
    feeds = Feeds()
    write(feeds, [("A-1", 5)], partition=3)
    assert read(feeds, ["A-1"]) == {}


def test_a_mark_is_raised_and_never_lowered() -> None:
    feeds = Feeds()
    for following, expected in (
        (5, 5),
        (9, 9),
        (10, 10),
        (9, 10),
        (5, 10),
        (100_000, 100_000),
        (11, 100_000),
    ):
        write(feeds, [("A-1", following), ("B-1", 3)])
        assert read(feeds, ["A-1", "B-1"]) == {"A-1": expected, "B-1": 3}


@pytest.mark.parametrize("given", [(9, 5), (5, 9)])
def test_of_two_marks_of_a_stream_the_higher_is_written(given: tuple[int, int]) -> None:
    feeds = Feeds()
    write(feeds, [("A-1", following) for following in given])
    assert read(feeds, ["A-1"]) == {"A-1": 9}


def test_no_streams_ask_for_nothing() -> None:
    feeds = Feeds()
    write(feeds, [])
    assert read(feeds, []) == {}
    assert feeds.ops == []


def test_a_leaf_is_the_item_that_formats_describes() -> None:
    feeds = Feeds()
    write(feeds, [("A-1", 5), ("B-1", 300)], partition=3)
    (item,) = feeds.tables.items("index")
    assert hash_of("A-1") == hashlib.sha256(b"A-1").digest()[:9]
    first, second = sorted(["A-1", "B-1"], key=hash_of)
    following = {"A-1": 5, "B-1": 300}
    assert item == {
        "p": {"S": "$Marks-3"},
        "i": {"N": "281474976710656"},
        "z": {"N": "281474976710656"},
        "v": {"N": "1"},
        "w": {"N": "2"},
        "h": {"B": hash_of(first) + hash_of(second)},
        "n": {"B": following[first].to_bytes(2, "big") + following[second].to_bytes(2, "big")},
    }


def test_thousands_of_marks_are_in_leaves_of_a_read_unit_each_and_all_are_found() -> None:
    feeds = Feeds()
    rng = random.Random(1)
    expected: dict[str, int] = {}
    leaves = Leaves()
    for _ in range(8):
        some = rng.sample(MANY, 1_500)
        write(feeds, some, leaves)
        expected.update(some)
    check_ranges(stored(feeds))
    assert all(leaf.size <= LEAF for leaf in stored(feeds))
    assert read(feeds, [stream for stream, _ in MANY]) == expected
    assert {stream: read(feeds, [stream]).get(stream, 0) for stream, _ in MANY[:50]} == {
        stream: expected.get(stream, 0) for stream, _ in MANY[:50]
    }


@pytest.mark.parametrize(
    "item",
    [
        {"h": {"B": b"123"}},
        {"n": {"B": b""}},
        {"w": {"N": "2"}},
    ],
)
def test_a_leaf_that_is_none_is_refused(item: Item) -> None:
    feeds = Feeds()
    write(feeds, [("A-1", 5)])
    (leaf,) = feeds.tables.items("index")
    with pytest.raises(CorruptData):
        decode_leaf({**leaf, **item})


@pytest.mark.parametrize(("count", "parts"), [(LEAF // (HASH + 1), 1), (LEAF // (HASH + 1) + 1, 2)])
def test_a_leaf_is_split_once_it_has_more_bytes_than_a_leaf_may_have(count: int, parts: int) -> None:
    marked = {hash_of(f"Order-{k}"): 1 for k in range(count)}
    leaf = Leaf(start=0, end=PLACES).with_marks(marked)
    assert leaf.size == count * (HASH + 1)
    made = leaf.split()
    assert len(made) == parts
    assert {hashed: mark for part in made for hashed, mark in part.marks().items()} == marked
    check_ranges(made)


# ------------------------------------------------------------------------------------------------------------ requests


def test_a_stream_is_looked_up_by_one_read_of_one_leaf() -> None:
    feeds = Feeds()
    write(feeds, MANY)
    start, units = len(feeds.ops), feeds.meter.units.read
    assert read(feeds, ["Order-17"]) == {"Order-17": 18}
    (only,) = feeds.ops[start:]
    assert isinstance(only, Query)
    assert feeds.meter.units.read - units == 1


def test_where_most_leaves_are_wanted_all_are_read_at_once_and_none_again() -> None:
    feeds, leaves = Feeds(), Leaves()
    write(feeds, MANY)
    start, units = len(feeds.ops), feeds.meter.units.read
    read(feeds, [stream for stream, _ in MANY[:200]], leaves)
    assert len(feeds.ops) - start <= 3
    assert feeds.meter.units.read - units < 1.2 * sum(leaf.size for leaf in stored(feeds)) / 4_096 + 3
    start = len(feeds.ops)
    assert len(read(feeds, [stream for stream, _ in MANY], leaves)) == len(MANY)
    assert len(feeds.ops) == start


@pytest.mark.slow
def test_a_few_of_many_leaves_are_read_side_by_side() -> None:
    feeds, leaves = Feeds(), Leaves()
    write(feeds, [(f"Order-{k}", 1) for k in range(60_000)])
    start = len(feeds.ops)
    assert len(read(feeds, [f"Order-{k}" for k in range(3)], leaves)) == 3
    asked = feeds.ops[start:]
    assert len(asked) == 3
    assert all(isinstance(op, Query) and op.limit == 1 for op in asked)


def test_a_thousand_marks_are_a_dozen_units() -> None:
    feeds = Feeds()
    write(feeds, MANY)
    leaves, before = Leaves(), feeds.meter.units
    near = sorted((stream for stream, _ in MANY), key=hash_of)[:1_000]
    write(feeds, [(stream, 100_000) for stream in near], leaves)
    assert feeds.meter.units.write - before.write < 25
    assert feeds.meter.units.read - before.read < 10


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "MOST_HELD", 20_000)
    feeds, leaves = Feeds(), Leaves()
    write(feeds, MANY)
    for stream, _ in MANY[::10]:
        read(feeds, [stream], leaves)
        assert leaves.size <= 20_000 + LEAF
        assert leaves.size == sum(leaf.size for leaf in leaves.by_start.values())


# ------------------------------------------------------------------------------------------------------------- writers


def test_who_holds_a_leaf_that_others_have_written_merges_with_what_they_wrote() -> None:
    feeds, mine = Feeds(), Leaves()
    write(feeds, [("A-1", 5)], mine)
    write(feeds, [("A-1", 8), ("B-1", 2)])
    write(feeds, [("A-1", 7), ("C-1", 3)], mine)
    assert read(feeds, ["A-1", "B-1", "C-1"]) == {"A-1": 8, "B-1": 2, "C-1": 3}


def test_who_holds_a_leaf_that_others_have_split_writes_to_its_parts() -> None:
    feeds, mine = Feeds(), Leaves()
    write(feeds, MANY[:10], mine)
    write(feeds, MANY)
    write(feeds, [(stream, 100_000) for stream, _ in MANY[:2_000]], mine)
    check_ranges(stored(feeds))
    assert read(feeds, [stream for stream, _ in MANY]) == {
        **dict(MANY),
        **{s: 100_000 for s, _ in MANY[:2_000]},
    }


def test_a_split_whose_answer_is_lost_is_done_once() -> None:
    feeds = Feeds()
    write(feeds, MANY[:100])
    lost: list[Op] = []

    def lose(op: Op) -> None:
        if isinstance(op, Transact) and not lost:
            lost.append(op)
            feeds.tables.execute(op)
            raise Lost("cut off")

    feeds.fault = lose
    write(feeds, MANY)
    feeds.fault = no_fault
    assert lost
    check_ranges(stored(feeds))
    assert read(feeds, [stream for stream, _ in MANY]) == dict(MANY)


def test_raising_what_is_as_high_already_writes_nothing() -> None:
    feeds = Feeds()
    write(feeds, MANY)
    start = len(feeds.ops)
    write(feeds, [(stream, 1) for stream, _ in MANY])
    assert all(map(is_read, feeds.ops[start:]))


# ------------------------------------------------------------------------------------------------- the form of before


def single(feeds: Feeds, stream: str, following: int) -> None:
    item = {**calf_key(mark_name(0, stream), 0), "n": number(following)}
    feeds.tables.execute(Put(table="index", item=item))


def test_marks_that_are_items_of_their_own_are_read_where_there_is_no_leaf() -> None:
    feeds = Feeds()
    single(feeds, "A-1", 5)
    assert read(feeds, ["A-1", "B-1"]) == {"A-1": 5}


def test_an_index_that_has_marks_of_both_forms_reads_the_new_ones_first_and_splits_keep_that_in_mind() -> (
    None
):
    feeds = Feeds()
    for stream in ("Old-1", "Old-2"):
        single(feeds, stream, 3)
    feeds.driver.run(marks.write_marks("index", 0, Leaves(), [("Old-2", 9)]))
    feeds.driver.run(marks.write_marks("index", 0, Leaves(), MANY))
    assert len(stored(feeds)) > 10
    assert read(feeds, ["Order-2", "Old-1", "Old-2", "None-1"]) == {"Order-2": 3, "Old-1": 3, "Old-2": 9}


@pytest.mark.parametrize("begun", [True, False])
def test_an_index_that_began_with_leaves_never_asks_for_the_old_form(*, begun: bool) -> None:
    feeds = Feeds()
    if begun:
        feeds.driver.run(begin_marks("index", 0))
    else:
        write(feeds, [("A-1", 2)])
    start = len(feeds.ops)
    assert read(feeds, ["B-1", "C-1"]) == {}
    assert not any(isinstance(op, BatchGet) for op in feeds.ops[start:])


# ------------------------------------------------------------------------------------------------------------- damage


def lose_a_leaf(feeds: Feeds, of: str) -> None:
    leaf = next(leaf for leaf in stored(feeds) if leaf.start <= hash_place(hash_of(of)) < leaf.end)
    feeds.tables.execute(Delete(table="index", key=calf_key(marks_name(0), FLOOR + leaf.start)))


@pytest.mark.parametrize("which", [0, 2_500, 4_999])
def test_a_lost_leaf_is_told_and_not_taken_for_streams_without_marks(which: int) -> None:
    feeds = Feeds()
    write(feeds, MANY)
    stream = sorted((stream for stream, _ in MANY), key=hash_of)[which]
    lose_a_leaf(feeds, stream)
    for ask in (lambda: read(feeds, [stream]), lambda: write(feeds, [(stream, 9)])):
        with pytest.raises(CorruptData, match="marks are missing"):
            ask()


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 2_500, 4_999])
def test_care_finds_a_lost_leaf_empty_and_puts_it_back(which: int) -> None:
    feeds = Feeds()
    write(feeds, MANY)
    in_order = sorted((stream for stream, _ in MANY), key=hash_of)
    lose_a_leaf(feeds, in_order[which])
    found = read(feeds, in_order, Leaves(lenient=True))
    lost: list[Any] = [stream for stream in in_order if stream not in found]
    assert in_order[which] in lost
    write(feeds, [(stream, dict(MANY)[stream]) for stream in lost], Leaves(lenient=True))
    check_ranges(stored(feeds))
    assert read(feeds, in_order) == dict(MANY)
