from __future__ import annotations

import json

import pytest

from epochal.codec.bodies import decode
from epochal.errors import CorruptData
from epochal.index.series import Series, read_series, register, start_epoch
from epochal.index.tip import read_event, read_tip, read_unfold
from epochal.index.wire_batch import Ids
from epochal.plan.failures import Lost
from epochal.plan.ops import Op, Put
from tests.core.feed.feeds import Feeds, is_read


def ids(serial: int) -> Ids:
    fresh = serial.to_bytes(16, "big")
    return Ids(etag=fresh.hex(), append_id=fresh, timestamp="2013-01-01T00:00:00.0000000+00:00")


def test_an_index_that_is_new_has_no_partitions_and_no_epochs() -> None:
    assert Feeds().driver.run(read_series("index")) == Series()


def test_the_number_of_partitions_is_recorded_once_and_kept_whoever_asks_for_another() -> None:
    feeds = Feeds()
    assert feeds.driver.run(register("index", {"tips": 4}, ids(1)))["tips"] == 4
    assert feeds.driver.run(register("index", {"tips": 8}, ids(2)))["tips"] == 4
    series = feeds.driver.run(read_series("index"))
    assert (series.partitions, series.refused["tips"].partitions) == ({"tips": 4}, 8)
    assert feeds.driver.run(register("index", {"tips": 4}, ids(3)))["tips"] == 4
    assert feeds.driver.run(read_series("index")) == Series(partitions={"tips": 4})


def test_of_two_that_register_at_once_the_second_learns_what_the_first_recorded() -> None:
    feeds = Feeds()
    faster = Feeds(tables=feeds.tables)
    found: list[int] = []

    def overtake_the_first_write(op: Op) -> None:
        if not is_read(op) and not found:
            found.append(faster.driver.run(register("index", {"tips": 4}, ids(2)))["tips"])

    feeds.fault = overtake_the_first_write
    found.append(feeds.driver.run(register("index", {"tips": 8}, ids(1)))["tips"])
    assert found == [4, 4]
    series = feeds.driver.run(read_series("index"))
    assert (series.partitions, series.refused["tips"].partitions) == ({"tips": 4}, 8)


def test_the_series_keeps_the_highest_epoch_of_each_partition() -> None:
    feeds = Feeds()
    for serial, (partition, epoch) in enumerate([(0, 1), (1, 5), (0, 2), (1, 3), (0, 2)]):
        feeds.driver.run(start_epoch("index", partition, epoch, ids(serial + 1)))
    assert feeds.driver.run(read_series("index")).active == {0: 2, 1: 5}


def test_starting_an_epoch_that_is_on_record_writes_nothing() -> None:
    feeds = Feeds()
    feeds.driver.run(start_epoch("index", 0, 3, ids(1)))
    start = len(feeds.ops)
    feeds.driver.run(start_epoch("index", 0, 3, ids(2)))
    feeds.driver.run(start_epoch("index", 0, 2, ids(3)))
    assert all(is_read(op) for op in feeds.ops[start:])


def test_registering_and_starting_do_not_lose_each_other() -> None:
    feeds = Feeds()
    feeds.driver.run(start_epoch("index", 0, 3, ids(1)))
    feeds.driver.run(register("index", {"tips": 2}, ids(2)))["tips"]
    feeds.driver.run(start_epoch("index", 1, 1, ids(3)))
    assert feeds.driver.run(read_series("index")) == Series(active={0: 3, 1: 1}, partitions={"tips": 2})


def test_a_start_whose_response_is_lost_is_recorded_once() -> None:
    feeds = Feeds()
    feeds.driver.run(start_epoch("index", 0, 1, ids(1)))
    lost: list[Op] = []

    def lose_one_response(op: Op) -> None:
        if not is_read(op) and not lost:
            lost.append(op)
            feeds.tables.execute(op)
            raise Lost("cut off")

    feeds.fault = lose_one_response
    feeds.driver.run(start_epoch("index", 0, 2, ids(2)))
    assert lost
    tip = feeds.tip("$AppendsIndex-0")
    assert tip is not None
    bodies = [decode(read_event(kind, event).data) for kind, event in read_tip(tip).span.pairs]
    assert bodies == [b'{"partition":0,"epoch":1}', b'{"partition":0,"epoch":2}']


def test_the_snapshot_has_the_bytes_that_formats_gives() -> None:
    feeds = Feeds()
    feeds.driver.run(register("index", {"tips": 4}, ids(1)))["tips"]
    feeds.driver.run(start_epoch("index", 3, 7, ids(2)))
    tip = feeds.tip("$AppendsIndex-0")
    assert tip is not None
    (unfold,) = map(read_unfold, read_tip(tip).unfolds)
    assert unfold.type == "Snapshotted"
    body = decode(unfold.data)
    assert isinstance(body, bytes)
    assert json.loads(body) == {"active": {"3": 7}, "partitions": {"tips": 4}}
    assert read_tip(tip).span.types == ("Started",)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"active":[]}', b'{"active":{"x":1}}', b"\xff"])
def test_a_snapshot_that_is_none_is_corruption(body: bytes) -> None:
    feeds = Feeds()
    feeds.driver.run(register("index", {"tips": 4}, ids(1)))["tips"]
    tip = feeds.tip("$AppendsIndex-0")
    assert tip is not None
    unfold = {"M": {"i": {"N": "0"}, "c": {"S": "Snapshotted"}, "d": {"B": body}}}
    feeds.tables.execute(Put(table="index", item={**tip, "u": {"L": [unfold]}}))
    with pytest.raises(CorruptData, match="AppendsIndex"):
        feeds.driver.run(read_series("index"))
