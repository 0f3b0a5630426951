from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from epochal.errors import InvalidInput, Unavailable
from epochal.feed.indexer import Indexer, Report
from epochal.index.checkpoints import Checkpoint, epoch_stream, tip_key
from epochal.index.epochs import EpochLimits
from epochal.index.series import RefusedCount, read_series, register, start_epoch
from epochal.layout.registry import partition_of
from epochal.plan.failures import Lost, RequestNotApplied
from epochal.plan.ops import Delete, Op, Put
from epochal.plan.values import Item
from tests.contrib.equinox.feeds import TipFeeds, head, record
from tests.core.feed.feeds import Feeds, is_read, no_fault, streams_of


def throttle(feeds: Feeds, *streams: str) -> None:
    """Every request that touches one of these fails, for good."""

    def fault(op: Op) -> None:
        if set(streams) & set(streams_of([op])):
            raise RequestNotApplied("throttled")

    feeds.fault = fault


def kept(feeds: Feeds) -> list[dict[str, Any]]:
    """What has been set aside."""
    poison = replace(feeds.streams, table="index").reader().events("$Poison-0", None, None, "forward")
    events = list(poison)
    assert {event.type for event in events} <= {"SetAside"}
    return [json.loads(event.data) for event in events if isinstance(event.data, bytes)]


def in_partition(number: int, partitions: int) -> str:
    return next(name for k in range(1_000) if partition_of(name := f"Order-{k}", partitions) == number)


def tip(**attributes: dict[str, Any]) -> Item:
    return {"p": {"S": "Order-1"}, "i": {"N": "2147483647"}, **attributes}


# ------------------------------------------------------------------------------------------------------------- batches


def test_what_is_appended_is_in_the_feed_after_a_batch() -> None:
    feeds = TipFeeds()
    feeds.append("Order-1", "Placed", "Paid")
    feeds.append("Order-2", "Placed")
    feeds.append("Order-1", "Shipped")
    report = feeds.indexer().index(feeds.records())
    assert report.by_partition[0].events == 4
    assert (report.failed, report.set_aside, report.errors) == ((), 0, ())
    assert feeds.feed() == [
        ("Order-1", 0, "Placed"),
        ("Order-1", 1, "Paid"),
        ("Order-2", 0, "Placed"),
        ("Order-1", 2, "Shipped"),
    ]


def test_a_batch_is_one_write_of_one_unit_a_kilobyte_once_the_indexer_is_warm() -> None:
    feeds = TipFeeds()
    indexer = feeds.indexer()
    indexer.index([record(0, head("Order-1", 1, "Placed"))])
    requests, units = feeds.meter.requests, feeds.meter.units
    indexer.index([record(k, head("Order-1", k + 1, "Paid")) for k in range(1, 10)])
    assert feeds.meter.requests - requests == 1
    assert (feeds.meter.units.read - units.read, feeds.meter.units.write - units.write) == (0, 1)


def test_a_cold_indexer_reads_the_series_and_two_epochs() -> None:
    feeds = TipFeeds(limits=EpochLimits(entries=2))
    for k in range(9):
        feeds.indexer().index([record(k, head("Order-1", k + 1, "Paid"))])
    start = len(feeds.ops)
    feeds.indexer().index([record(9, head("Order-1", 10, "Paid"))])
    read = streams_of(op for op in feeds.ops[start:] if is_read(op))
    assert set(read) == {
        "$AppendsIndex-0",
        epoch_stream(0, 3),
        epoch_stream(0, 4),
        epoch_stream(0, 5),
    }
    # Epoch 4 filled up and closed, so that epoch 5 was looked at.
    assert feeds.feed()[-1] == ("Order-1", 9, "Paid")


def test_batches_delivered_again_add_nothing() -> None:
    feeds = TipFeeds()
    for k in range(3):
        feeds.append("Order-1", f"T{k}")
    indexer = feeds.indexer()
    indexer.index(feeds.records())
    again = indexer.index(feeds.records())
    cold = feeds.indexer().index(feeds.records())
    assert again.by_partition[0].events == cold.by_partition[0].events == 0
    assert [index for _, index, _ in feeds.feed()] == [0, 1, 2]


def test_records_go_to_the_partitions_of_their_streams() -> None:
    feeds = TipFeeds(partitions=4)
    names = [f"Order-{k}" for k in range(40)]
    report = feeds.indexer().index(record(k, head(name, 1, "Placed")) for k, name in enumerate(names))
    assert set(report.by_partition) == {0, 1, 2, 3}
    for number in range(4):
        mine = [name for name in names if partition_of(name, 4) == number]
        assert [stream for stream, _, _ in feeds.feed(number)] == mine


def test_an_empty_batch_asks_for_nothing() -> None:
    feeds = TipFeeds()
    report = feeds.indexer().index([])
    assert report == Report(by_partition={}, failed=(), set_aside=0)
    assert feeds.ops == []


@pytest.mark.parametrize(
    "image",
    [
        {"p": {"S": "Order-1"}, "i": {"N": "0"}, "n": {"N": "3"}, "c": {"L": [{"S": "a"}]}},
        {"p": {"S": "Order-1"}, "i": {"N": "0"}, "n": {"N": "3"}, "a": {"N": "3"}},
        {"p": {"S": "$Idempotency-0123"}, "i": {"N": "0"}, "n": {"N": "3"}, "ttl": {"N": "99"}},
        {"p": {"S": "$Marks-0"}, "i": {"N": "281474976710656"}, "n": {"B": b""}, "h": {"B": b""}},
        tip(n={"N": "3"}, a={"N": "0"}, c={"L": [{"S": "a"}]}),
        tip(n={"N": "3"}, a={"N": "0"}, l={"N": "3"}, z={"N": "1"}),
        head("$System-1", 1, "Started"),
    ],
    ids=[
        "calf",
        "calf with a",
        "idempotency record",
        "mark",
        "unfolds or prune",
        "tombstone",
        "system stream",
    ],
)
def test_what_is_no_append_of_a_user_is_passed_over_without_a_request(image: Item) -> None:
    feeds = TipFeeds()
    report = feeds.indexer().index([record(0, image)])
    assert report == Report(by_partition={}, failed=(), set_aside=0)
    assert feeds.ops == []


def test_a_foreign_trim_that_left_its_counter_is_not_taken_for_more_events_than_there_are() -> None:
    feeds = TipFeeds()
    trimmed = tip(n={"N": "5"}, a={"N": "3"}, c={"L": [{"S": "e"}]})
    indexer = feeds.indexer()
    indexer.index([record(0, head("Order-1", 5, *"abcde")), record(1, trimmed)])
    assert [kind for _, _, kind in feeds.feed()] == list("abcde")


# ------------------------------------------------------------------------------------------------------------ failures


def test_the_records_of_a_partition_that_fails_are_named_and_the_others_are_indexed() -> None:
    feeds = TipFeeds(partitions=3)
    names = [in_partition(number, 3) for number in (0, 1, 2)]
    records = [record(k, head(names[k % 3], k // 3 + 1, "T")) for k in range(9)]
    indexer = feeds.indexer()
    throttle(feeds, epoch_stream(1, 0))
    report = indexer.index(records)
    assert report.failed == tuple(records[k].sequence_number for k in (1, 4, 7))
    assert [type(error) for error in report.errors] == [Unavailable]
    assert {number: ingested.events for number, ingested in report.by_partition.items()} == {0: 3, 2: 3}
    assert (len(feeds.feed(0)), len(feeds.feed(2))) == (3, 3)

    throttle(feeds)
    again = indexer.index(records)
    assert again.failed == ()
    assert {number: ingested.events for number, ingested in again.by_partition.items()} == {0: 0, 1: 3, 2: 0}


def test_after_an_error_nothing_is_held_and_the_state_is_read_anew() -> None:
    feeds = TipFeeds()
    indexer = feeds.indexer()
    indexer.index([record(0, head("Order-1", 1, "a"))])
    throttle(feeds, epoch_stream(0, 0))
    assert indexer.index([record(1, head("Order-1", 2, "b"))]).failed
    throttle(feeds)
    start = len(feeds.ops)
    indexer.index([record(1, head("Order-1", 2, "b"))])
    assert streams_of(feeds.ops[start:])[:2] == ["$AppendsIndex-0", epoch_stream(0, 0)]
    assert [kind for _, _, kind in feeds.feed()] == ["a", "b"]


def test_marks_that_an_error_kept_from_being_written_are_written_before_the_epoch_closes() -> None:
    feeds = TipFeeds(limits=EpochLimits(entries=1))
    indexer = feeds.indexer()
    indexer.index([record(0, head("Order-1", 1, "a"))])
    throttle(feeds, "$Marks-0")
    assert indexer.index([record(1, head("Order-2", 1, "a"))]).failed
    throttle(feeds)
    assert not indexer.index([record(1, head("Order-2", 1, "a"))]).failed
    assert feeds.marks()["0_Order-1"] == 1


def test_a_write_whose_response_was_lost_is_not_written_again() -> None:
    feeds = TipFeeds()
    indexer = feeds.indexer()
    indexer.index([record(0, head("Order-1", 1, "a"))])
    lost: list[Op] = []

    def lose_one_response(op: Op) -> None:
        if not is_read(op) and not lost:
            lost.append(op)
            feeds.tables.execute(op)
            raise Lost("cut off")

    feeds.fault = lose_one_response
    report = indexer.index([record(1, head("Order-1", 2, "b"))])
    assert (report.by_partition[0].events, report.failed) == (1, ())
    assert [kind for _, _, kind in feeds.feed()] == ["a", "b"]


def test_a_crash_in_the_middle_of_a_batch_leaves_nothing_held() -> None:
    feeds = TipFeeds()
    indexer = feeds.indexer()
    indexer.index([record(0, head("Order-1", 1, "a"))])

    def crash(op: Op) -> None:
        raise KeyboardInterrupt

    feeds.fault = crash
    with pytest.raises(KeyboardInterrupt):
        indexer.index([record(1, head("Order-1", 2, "b"))])
    throttle(feeds)
    start = len(feeds.ops)
    assert indexer.index([record(1, head("Order-1", 2, "b"))]).by_partition[0].events == 1
    assert streams_of(feeds.ops[start:])[0] == "$AppendsIndex-0"


# -------------------------------------------------------------------------------------------------------------- poison

POISON = {
    "no count of what was appended": tip(n={"N": "1"}, c={"L": [{"S": "a"}]}),
    "no next index": tip(a={"N": "1"}, c={"L": [{"S": "a"}]}),
    "more appended than there are": tip(n={"N": "1"}, a={"N": "2"}, c={"L": [{"S": "a"}, {"S": "b"}]}),
    "a negative count": tip(n={"N": "5"}, a={"N": "-1"}, c={"L": [{"S": "a"}]}),
    "half an event": tip(n={"N": "1.5"}, a={"N": "1"}, c={"L": [{"S": "a"}]}),
    "a count that is text": tip(n={"S": "1"}, a={"N": "1"}, c={"L": [{"S": "a"}]}),
    "types that are no list": tip(n={"N": "1"}, a={"N": "1"}, c={"SS": ["a"]}),
    "types that are numbers": tip(n={"N": "1"}, a={"N": "1"}, c={"L": [{"N": "1"}]}),
    "counters that are null": tip(n={"NULL": True}, a={"NULL": True}),
}


@pytest.mark.parametrize("image", POISON.values(), ids=POISON)
def test_a_malformed_head_is_set_aside_with_its_cause_and_its_neighbours_go_on(image: Item) -> None:
    feeds = TipFeeds()
    batch = [
        record(0, head("Order-1", 1, "a")),
        record(1, image),
        record(2, head("Order-2", 1, "b")),
        record(3, head("Order-1", 2, "c")),
    ]
    report = feeds.indexer().index(batch)
    assert (report.failed, report.set_aside) == ((), 1)
    assert feeds.feed() == [("Order-1", 0, "a"), ("Order-2", 0, "b"), ("Order-1", 1, "c")]
    (found,) = kept(feeds)
    assert found["image"] == image
    name, _, what = found["cause"].partition(": ")
    assert name == "CorruptData"
    assert what


@pytest.mark.parametrize("same_process", [True, False])
def test_a_poison_record_that_is_delivered_again_is_set_aside_once(*, same_process: bool) -> None:
    feeds = TipFeeds()
    indexer = feeds.indexer()
    bad = [record(k, image) for k, image in enumerate(POISON.values())]
    assert indexer.index(bad).set_aside == len(POISON)
    for _ in range(2):
        again = (indexer if same_process else feeds.indexer()).index(bad)
        assert (again.set_aside, again.failed) == (0, ())
    assert [found["image"] for found in kept(feeds)] == list(POISON.values())


def test_binaries_of_a_poison_record_are_kept_in_hex() -> None:
    feeds = TipFeeds()
    feeds.indexer().index([record(0, tip(a={"N": "1"}, e={"L": [{"M": {"d": {"B": b"\x00\xff"}}}]}))])
    assert kept(feeds)[0]["image"]["e"] == {"L": [{"M": {"d": {"B": "00ff"}}}]}


def test_a_poison_record_near_400_kb_is_set_aside_by_its_keys() -> None:
    feeds = TipFeeds()
    body = random.Random(1).randbytes(390_000)
    image = tip(a={"N": "1"}, e={"L": [{"M": {"d": {"B": body}}}]})
    report = feeds.indexer().index([record(0, image), record(1, head("Order-2", 1, "b"))])
    assert (report.failed, report.set_aside) == ((), 1)
    (found,) = kept(feeds)
    assert found["image"] == {"p": {"S": "Order-1"}, "i": {"N": "2147483647"}}
    assert found["omitted"] > 390_000
    assert feeds.feed() == [("Order-2", 0, "b")]


def test_a_stream_whose_name_leaves_no_room_for_a_mark_is_set_aside() -> None:
    feeds = TipFeeds()
    long = "A-" + "x" * 2_040
    report = feeds.indexer().index([record(0, head(long, 1, "a")), record(1, head("Order-2", 1, "b"))])
    assert (report.failed, report.set_aside) == ((), 1)
    assert feeds.feed() == [("Order-2", 0, "b")]
    assert max(len(item["p"]["S"]) for item in feeds.tables.items("index")) <= 2_048


def test_a_record_that_cannot_be_set_aside_now_is_delivered_again_and_its_neighbours_go_on() -> None:
    feeds = TipFeeds()
    batch = [record(0, POISON["no next index"]), record(1, head("Order-2", 1, "b"))]
    indexer = feeds.indexer()
    throttle(feeds, "$Poison-0")
    report = indexer.index(batch)
    assert (report.failed, report.set_aside) == ((batch[0].sequence_number,), 0)
    assert [type(error) for error in report.errors] == [Unavailable]
    assert feeds.feed() == [("Order-2", 0, "b")]
    throttle(feeds)
    assert indexer.index(batch).set_aside == 1


GAP = [
    record(0, head("Order-1", 1, "a")),
    record(1, head("Order-1", 2, "b")),
    record(2, head("Order-2", 1, "x")),
    record(3, head("Order-1", 5, "e")),
    record(4, head("Order-1", 6, "f")),
]

FIRST: Item = {**tip(n={"N": "1"}, e={"L": [{"M": {}}]}, c={"L": [{"S": "a"}]}), "i": {"N": "0"}}
"""A calf: whoever prunes deletes the oldest first."""


def test_what_another_library_pruned_before_it_was_indexed_is_passed_over_and_its_stream_goes_on() -> None:
    feeds = TipFeeds()
    feeds.tables.execute(Put(table="tips", item=tip(n={"N": "7"}, e={"L": []})))
    report = feeds.indexer().index(GAP)
    assert (report.failed, report.set_aside) == ((), 0)
    assert report.by_partition[0].pruned == 2
    assert [place for place in feeds.feed() if place[0] == "Order-1"] == [
        ("Order-1", 0, "a"),
        ("Order-1", 1, "b"),
        ("Order-1", 4, "e"),
        ("Order-1", 5, "f"),
    ]


def test_records_of_a_stream_that_cannot_be_healed_are_set_aside_and_the_others_indexed() -> None:
    feeds = TipFeeds()
    indexer = feeds.indexer()
    indexer.index([record(0, head("Order-1", 1, "a"))])
    feeds.tables.execute(Put(table="tips", item=tip(n={"N": "7"}, e={"L": []})))
    feeds.tables.execute(Put(table="tips", item=FIRST))
    report = indexer.index(GAP)
    assert (report.failed, report.set_aside) == ((), 2)
    assert report.by_partition[0].events == 2
    assert [found["image"]["n"]["N"] for found in kept(feeds)] == ["5", "6"]
    assert "Order-1" in kept(feeds)[0]["cause"]
    assert feeds.feed() == [("Order-1", 0, "a"), ("Order-1", 1, "b"), ("Order-2", 0, "x")]


# ------------------------------------------------------------------------------------------------------------- process


def test_a_process_told_another_number_of_partitions_is_refused() -> None:
    feeds = TipFeeds(partitions=4)
    feeds.indexer().register()
    feeds.indexer().register()
    feeds.partitions = 8
    with pytest.raises(InvalidInput, match="must be 4, as recorded in the index") as refusal:
        feeds.indexer().register()
    assert refusal.value.field == "EPOCHAL_TIPS_PARTITIONS"


def test_a_refused_number_of_partitions_is_on_record_until_the_right_one_is_back() -> None:
    feeds = TipFeeds(partitions=4)
    feeds.indexer().register()

    def failure() -> str:
        return feeds.indexer().driver.run(read_series("index")).refusal("tips")

    assert failure() == ""
    for count in (8, 2):
        feeds.partitions = count
        for _ in range(2):
            with pytest.raises(InvalidInput, match="must be 4, as recorded in the index"):
                feeds.indexer().register()
        assert f"deployed for {count} partitions of tips, and the index has 4" in failure()
    feeds.partitions = 4
    feeds.indexer().register()
    assert failure() == ""


def test_a_refused_number_is_on_record_since_the_first_refusal_and_through_new_epochs() -> None:
    feeds = TipFeeds(partitions=4)
    feeds.indexer().register()
    driver, right = feeds.indexer().driver, feeds.indexer().ids()
    driver.run(register("index", {"tips": 8}, replace(right, timestamp="first")))
    driver.run(register("index", {"tips": 8}, replace(right, timestamp="second")))
    driver.run(start_epoch("index", 0, 1, right))
    assert driver.run(read_series("index")).refused == {"tips": RefusedCount(partitions=8, since="first")}


def test_where_the_epoch_that_it_holds_is_deleted_it_begins_as_a_new_process_does() -> None:
    """Not for ever: each write would be refused, and nothing be there to tell why."""
    feeds = TipFeeds()
    indexer = feeds.indexer()
    feeds.append("Order-1", "Placed")
    indexer.index(feeds.records())
    feeds.tables.execute(Delete(table="index", key=tip_key(epoch_stream(0, 0))))
    feeds.append("Order-1", "Paid")
    feeds.append("Order-2", "Placed")

    def endless(_: Op) -> None:
        assert len(feeds.ops) < 100

    feeds.fault = endless
    assert not indexer.index(feeds.records(1)).failed
    feeds.fault = no_fault
    assert sorted(feeds.feed()) == [
        ("Order-1", 0, "Placed"),
        ("Order-1", 1, "Paid"),
        ("Order-2", 0, "Placed"),
    ]


def test_two_indexers_over_one_partition_add_up_to_one_feed() -> None:
    feeds = TipFeeds(limits=EpochLimits(entries=3))
    indexers = [feeds.indexer(), feeds.indexer()]
    rng = random.Random(4)
    following = {f"Order-{k}": 0 for k in range(6)}
    for serial in range(200):
        stream = rng.choice(list(following))
        following[stream] += 1
        indexer: Indexer = indexers[stream in ("Order-0", "Order-1")]
        indexer.index([record(serial, head(stream, following[stream], f"T{following[stream] - 1}"))])
    reached = dict.fromkeys(following, 0)
    for stream, index, kind in feeds.feed():
        assert (index, kind) == (reached[stream], f"T{index}")
        reached[stream] += 1
    assert reached == following


# ------------------------------------------------------------------------------------------------------------- notices


class Told:
    """A topic, which may be out."""

    def __init__(self) -> None:
        self.out = False
        self.had: list[dict[int, int]] = []

    def __call__(self, positions: Mapping[int, Checkpoint]) -> None:
        if self.out:
            raise OSError("the topic is out")
        self.had.append({number: int(at) for number, at in positions.items()})


def test_after_a_batch_reactions_are_told_where_its_partitions_are_once() -> None:
    feeds, told = TipFeeds(limits=EpochLimits(entries=2)), Told()
    indexer = replace(feeds.indexer(), publish=told)
    batches = [[record(k, head("Order-1", k + 1, "Paid"))] for k in range(3)]
    assert [indexer.index(batch).notified for batch in batches] == [1, 1, 1]
    assert indexer.index(batches[2]).notified == 0
    assert told.had == [{0: Checkpoint.of(0, 1)}, {0: Checkpoint.of(1, 0)}, {0: Checkpoint.of(1, 1)}]


def test_what_another_process_has_written_and_may_not_have_told_is_told_again() -> None:
    feeds, told = TipFeeds(), Told()
    batch = [record(0, head("Order-1", 1, "Placed"))]
    feeds.indexer().index(batch)
    report = replace(feeds.indexer(), publish=told).index(batch)
    assert (report.by_partition[0].events, report.notified) == (0, 1)
    assert told.had == [{0: Checkpoint.of(0, 1)}]


def test_a_batch_that_could_not_be_told_comes_again_once_and_then_the_index_goes_on() -> None:
    feeds, told = TipFeeds(), Told()
    indexer, told.out = replace(feeds.indexer(), publish=told), True
    batch = [record(k, head(f"Order-{k}", 1, "Placed")) for k in range(2)]
    first, again = indexer.index(batch), indexer.index(batch)
    assert first.failed == tuple(each.sequence_number for each in batch)
    assert again.failed == ()
    assert isinstance(again.notice_error, OSError)
    told.out = False
    assert indexer.index([]).notified == 1
    assert told.had == [{0: Checkpoint.of(0, 1)}]


@pytest.mark.parametrize("gone", ["pruned", "deleted"])
def test_a_batch_that_only_said_what_is_gone_comes_again_too_where_it_could_not_be_told(gone: str) -> None:
    feeds, told = TipFeeds(), Told()
    indexer = replace(feeds.indexer(), publish=told)
    feeds.append("Order-1", "Placed", "Paid")
    indexer.index(feeds.records())
    before, told.out = len(feeds.records()), True
    if gone == "pruned":
        feeds.streams.prune("Order-1", 1)
    else:
        feeds.streams.delete("Order-1")
    batch = feeds.records(before)
    first, again = indexer.index(batch), indexer.index(batch)
    assert (first.by_partition[0].events, first.by_partition[0].removals) == (0, 1)
    assert first.failed == tuple(each.sequence_number for each in batch)
    assert again.failed == ()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_records_that_fail_in_several_partitions_the_first_of_the_batch_is_named(
    order: tuple[int, int],
) -> None:
    feeds = TipFeeds(partitions=2)
    indexer = feeds.indexer()
    batch = [record(k, head(in_partition(number, 2), 1, "Placed")) for k, number in enumerate(order)]
    throttle(feeds, *(epoch_stream(number, 0) for number in order))
    report = indexer.index(batch)
    assert report.failed == tuple(each.sequence_number for each in batch)
    assert [number for number, _ in report.failing.values()] == [batch[0].sequence_number]
