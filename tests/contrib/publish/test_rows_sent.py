"""Events as rows on their way to Firehose: one flat object each, some in a record, none too large for one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from epochal import Event
from epochal.contrib.publish.cloudevents import Message
from epochal.contrib.publish.publication import Publication, publisher
from epochal.contrib.publish.recipients import LIMITS, Limit
from epochal.contrib.publish.rows import ROW_AT, together
from epochal.contrib.transfer.rows import COLUMNS
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.events import FeedEvent
from epochal.reactions.definition import Delivery
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import MemoryBodies

LAKE = Publication(name="lake", to="firehose", place="lake", source="epochal/shop", as_rows=True)


class Taken:
    """A delivery stream that takes everything."""

    def __init__(self) -> None:
        self.requests: list[list[Message]] = []

    def __call__(self, messages: Sequence[Message]) -> None:
        self.requests.append([*messages])

    @property
    def records(self) -> list[Message]:
        return [record for request in self.requests for record in request]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for record in self.records for line in record.text.split("\n")]


def sent(*events: FeedEvent, kept: MemoryBodies | None = None, limit: Limit = LIMITS["firehose"]) -> Taken:
    taken = Taken()
    delivery = Delivery(group="lake", partition=0, stream="Order-7", events=events)
    publisher(LAKE, kept or MemoryBodies(), "shop-bodies", taken, limit)(delivery)
    return taken


def of(index: int, data: bytes = b"{}", **more: Any) -> FeedEvent:
    return FeedEvent(
        stream="Order-7", index=index, type="Placed", data=data, timestamp="2026-11-23T10:00:00Z", **more
    )


def test_a_row_has_the_columns_of_every_row_and_the_body_as_it_is() -> None:
    (row,) = sent(of(3, b'{"total":1.10, "note":"a\\nb"}', tags=("order:7",), correlation_id="c")).rows
    assert [*row] == [*(each.name for each in COLUMNS), ROW_AT]
    assert (row["stream"], row["index"], row["time"]) == ("Order-7", 3, "2026-11-23T10:00:00.000000Z")
    assert row["data"] == '{"total":1.10, "note":"a\\nb"}'
    assert row[ROW_AT] is None


def test_rows_of_a_delivery_share_a_record_and_keep_their_order() -> None:
    taken = sent(*(of(number) for number in range(100)))
    assert len(taken.records) == 1
    assert [each["index"] for each in taken.rows] == [*range(100)]


def test_a_record_is_of_64_kilobytes_and_a_larger_row_alone() -> None:
    taken = sent(of(0), of(1, b'"%s"' % (b"x" * 100_000)), of(2), of(3))
    assert [record.text.count("\n") + 1 for record in taken.records] == [1, 1, 2]
    half = Message(id="1", source="s", type="t", group="g", text="x" * 32_768)
    assert [each.size for each in together([half] * 5)] == [65_537, 65_537, 32_768]


def test_a_row_too_large_for_a_record_says_where_all_of_it_is() -> None:
    kept, body = MemoryBodies(), b'{"%s": 1}' % (b"x" * 1_100_000)
    taken = sent(of(0, body, meta=b'{"user":"ada"}'), of(1), kept=kept)
    large, small = taken.rows
    assert {large[name] for name in ("data", "data64", "metadata", "metadata64")} == {None}
    assert (large["index"], large["type"], large["time"][:4]) == (0, "Placed", "2026")
    bucket, _, key = large[ROW_AT].removeprefix("s3://").partition("/")
    whole = json.loads(kept.objects[key])
    assert (bucket, whole["data"].encode(), whole["metadata"]) == ("shop-bodies", body, '{"user":"ada"}')
    assert small[ROW_AT] is None
    assert all(each.size < 1_000 * 1_024 for each in taken.records)


def test_a_row_that_escapes_make_too_large_is_measured_as_it_is_sent() -> None:
    """Each quote of a body is two bytes of the row."""
    kept = MemoryBodies()
    sent(of(0, b'["%s"]' % b'","'.join([b""] * 250_000)), kept=kept)
    assert len(kept.objects) == 1


def test_a_request_has_no_more_than_firehose_takes() -> None:
    taken = sent(*(of(number, b'"%s"' % (b"x" * 900_000)) for number in range(9)))
    assert all(sum(each.size + 1 for each in request) <= 4 * 1_024**2 for request in taken.requests)
    assert len(taken.rows) == 9


def test_what_is_gone_has_no_row_and_what_cannot_be_read_fails_the_delivery() -> None:
    gone = FeedEvent(stream="Order-7", index=0, type="", gone="pruned")
    assert [each["index"] for each in sent(gone, of(1)).rows] == [1]
    with pytest.raises(CorruptData):
        sent(of(1), FeedEvent(stream="Order-7", index=2, type="Placed", fault=CorruptData("broken")))


def test_a_sealed_body_stays_sealed_in_the_lake() -> None:
    sealed = b'{"$sealed":1,"subject":"ada","nonce":"AA==","data":"AAAA"}'
    (row,) = sent(of(0, sealed)).rows
    assert (row["sealed"], row["data"]) == (True, sealed.decode())


def test_every_event_of_a_feed_comes_once_whatever_tags_it_has() -> None:
    feed, taken = MemoryStore(), Taken()
    feed.streams.append("Order-7", [Event(type="Placed", data=b"{}", tags=("order:7", "customer:1"))])
    feed.streams.append("Order-7", [Event(type="Paid", data=b"{}")])
    feed.tagged.append([Event(type="Noted", data=b"{}", tags=("order:7", "customer:2"))])
    feed.react(publisher(LAKE, MemoryBodies(), "shop-bodies", taken, LIMITS["firehose"]))
    found = sorted((each["type"], each["stream"], each["index"]) for each in taken.rows)
    assert [each[:2] for each in found] == [("Noted", None), ("Paid", "Order-7"), ("Placed", "Order-7")]


def test_a_store_without_a_bucket_says_so_of_a_row_that_is_too_large() -> None:
    taken = Taken()
    large = of(0, b'"%s"' % (b"x" * 1_100_000))
    delivery = Delivery(group="lake", partition=0, stream="Order-7", events=(large,))
    with pytest.raises(InvalidInput, match="is needed for events that are too large"):
        publisher(LAKE, None, "", taken, LIMITS["firehose"])(delivery)
