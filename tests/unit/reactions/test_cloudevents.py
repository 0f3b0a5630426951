"""Events as CloudEvents 1.0: what each attribute says, what is sent together, and what is too large."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pytest

from epochal.errors import CorruptData, InvalidInput, Unavailable
from epochal.feed.results import FeedEvent
from epochal.hosting.publishing import PUBLISH, Publication, publication_of, publisher
from epochal.model.events import Claim
from epochal.reactions.cloudevents import BATCH, BYTES, CloudEvent, batches, cloud_event
from epochal.reactions.reaction import Delivery

PLACED = FeedEvent(
    stream="Order-7",
    index=3,
    type="Placed",
    data=b'{"total": 12.50}',
    timestamp="2026-11-22T10:00:00.123Z",
    correlation_id="c-1",
)


def nowhere(content: bytes) -> str:
    raise AssertionError(f"{len(content)} bytes were kept")


def shown(event: FeedEvent) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cloud_event(event, "epochal/shop", nowhere).text)
    return found


def test_an_event_of_a_stream_has_its_place_its_time_and_its_json() -> None:
    assert shown(PLACED) == {
        "specversion": "1.0",
        "id": "Order-7@3",
        "source": "epochal/shop",
        "type": "Placed",
        "subject": "Order-7",
        "time": "2026-11-22T10:00:00.123Z",
        "partitionkey": "Order-7",
        "sequence": "00000000000000000003",
        "correlationid": "c-1",
        "datacontenttype": "application/json",
        "data": {"total": 12.5},
    }


def test_a_tagged_event_has_its_own_id_in_whichever_stream_it_comes() -> None:
    tagged = FeedEvent(stream="$tag-a:1", index=9, type="Paid", id="e-1", tags=("a:1", "b:2"))
    found = shown(tagged)
    assert (found["id"], found["tags"]) == ("e-1", "a:1,b:2")


def test_tags_are_told_apart_whatever_is_in_them() -> None:
    tags = ("a,b", "c", "100%", "d%2Ce")
    found = shown(FeedEvent(stream="$tag-a,b", index=9, type="Paid", id="e-1", tags=tags))["tags"]
    assert found == "a%2Cb,c,100%25,d%252Ce"
    assert tuple(map(unquote, found.split(","))) == tags


@pytest.mark.parametrize(
    "data",
    [
        b'{"total":12.50}',
        b"0.1234567890123456789012",
        b"1e999",
        b'"\\ud800"',
        b"\xef\xbb\xbf [1] \n",
        b'{"data_base64": "x"}',
    ],
)
def test_what_is_json_is_sent_to_the_digit(data: bytes) -> None:
    event = FeedEvent(stream="Order-7", index=0, type="Placed", data=data)
    text = cloud_event(event, "epochal/shop", nowhere).text
    assert text.encode().endswith(b',"data":' + data.removeprefix(b"\xef\xbb\xbf").strip() + b"}")
    assert "data_base64" not in json.loads(text)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\x00",
        b"plain",
        b"NaN",
        b'{"a":1,"a":2}',
        b"[" * 50_000 + b"]" * 50_000,
        b"9" * 5_000,
        b"1e99999999999999999999",
        '{"a":1}'.encode("utf-16"),
    ],
    ids=lambda data: data[:12].hex(),
)
def test_what_is_no_json_is_base64(data: bytes) -> None:
    found = shown(FeedEvent(stream="Order-7", index=0, type="Placed", data=data))
    assert base64.b64decode(found["data_base64"]) == data
    assert found["datacontenttype"] == "application/octet-stream"
    assert "data" not in found


def test_a_message_holds_no_character_that_a_queue_refuses() -> None:
    data = '"\ufffe\uffff"'.encode()
    event = FeedEvent(stream="Order-7", index=0, type="\x00\uffff", data=data)
    text = cloud_event(event, "epochal/shop", nowhere).text
    assert not set("\x00\ufffe\uffff") & set(text)
    assert (shown(event)["data"], shown(event)["type"]) == ("\ufffe\uffff", "\x00\uffff")


@pytest.mark.parametrize("timestamp", ["", "1764000000000", "yesterday"])
def test_a_time_that_is_none_is_left_out_and_so_is_empty_data(timestamp: str) -> None:
    found = shown(FeedEvent(stream="Order-7", index=0, type="Placed", timestamp=timestamp))
    assert not {"time", "data", "data_base64", "datacontenttype"} & found.keys()


def test_an_event_that_cannot_be_read_says_why() -> None:
    with pytest.raises(CorruptData):
        shown(FeedEvent(stream="Order-7", index=0, type="", fault=CorruptData("spoilt")))


def test_batches_keep_the_order_and_hold_what_a_request_takes() -> None:
    def of(size: int, number: int) -> CloudEvent:
        return CloudEvent(id=str(number), source="s", type="t", group="g", text="x" * size)

    small = [of(10, number) for number in range(BATCH * 2 + 1)]
    assert [len(each) for each in batches(small)] == [BATCH, BATCH, 1]
    assert [each for batch in batches(small) for each in batch] == small
    large = [of(BYTES // 2, number) for number in range(3)]
    assert [len(each) for each in batches(large)] == [2, 1]
    assert list(batches([])) == []


def test_sizes_are_bytes_and_not_characters() -> None:
    kept: list[bytes] = []

    def keep(content: bytes) -> str:
        kept.append(content)
        return "s3://b/k"

    def of(characters: int) -> CloudEvent:
        data = f'"{"é" * characters}"'.encode()
        return cloud_event(FeedEvent(stream="Order-7", index=0, type="Placed", data=data), "shop", keep)

    assert "dataref" in of(BYTES // 2 + 1).text
    assert len(kept) == 1
    fits = of(BYTES // 2 - 300)
    assert "dataref" not in fits.text
    assert [len(each) for each in batches([fits, fits])] == [1, 1]


class Kept:
    """A bucket of bodies in memory."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put(self, claim: Claim, content: bytes) -> None:
        self.objects[claim.key] = content

    def get(self, claim: Claim) -> bytes:
        return self.objects[claim.key]

    def keep(self, claim: Claim) -> bool:
        return claim.key in self.objects


class Taken:
    """A recipient that takes so many batches, and no more."""

    def __init__(self, most: int = 1_000) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self._most = most

    def __call__(self, events: Sequence[CloudEvent]) -> None:
        if len(self.batches) == self._most:
            raise Unavailable("enough")
        self.batches.append([json.loads(each.text) for each in events])


PUBLICATION = Publication(
    name="publish-orders", to="queue", place="https://sqs/q", source="epochal/shop", categories=("Order",)
)


def delivery(*events: FeedEvent) -> Delivery:
    return Delivery(group="publish-orders", partition=0, stream="Order-7", events=events)


def test_what_is_too_large_for_a_message_is_referred_to_and_can_be_got() -> None:
    large = FeedEvent(stream="Order-7", index=0, type="Placed", data=b"\x00" * BYTES)
    kept, taken = Kept(), Taken()
    publisher(PUBLICATION, kept, "shop-bodies", taken)(delivery(large))
    ((found,),) = taken.batches
    bucket, _, key = found["dataref"].removeprefix("s3://").partition("/")
    assert (bucket, kept.objects[key]) == ("shop-bodies", large.data)
    assert not {"data", "data_base64"} & found.keys()
    with pytest.raises(InvalidInput, match="must be there"):
        publisher(PUBLICATION, None, "", Taken())(delivery(large))


def test_a_delivery_is_sent_in_order_without_what_is_gone() -> None:
    gone = FeedEvent(stream="Order-7", index=0, type="", gone="pruned")
    events = [FeedEvent(stream="Order-7", index=number, type="Placed") for number in range(1, 15)]
    taken = Taken()
    publisher(PUBLICATION, Kept(), "b", taken)(delivery(gone, *events))
    assert [each["id"] for batch in taken.batches for each in batch] == [f"Order-7@{k}" for k in range(1, 15)]


def test_a_delivery_fails_that_is_not_taken_and_comes_again_with_the_same_ids() -> None:
    events = [FeedEvent(stream="Order-7", index=number, type="Placed") for number in range(12)]
    first, again = Taken(most=1), Taken()
    with pytest.raises(Unavailable):
        publisher(PUBLICATION, Kept(), "b", first)(delivery(*events))
    publisher(PUBLICATION, Kept(), "b", again)(delivery(*events))
    assert again.batches[0] == first.batches[0]


def test_it_is_a_reaction_to_what_was_chosen_once_for_each_event() -> None:
    chosen = publisher(PUBLICATION, Kept(), "b", Taken())
    assert (chosen.name, chosen.categories, chosen.types, chosen.once) == (
        "publish-orders",
        {"Order"},
        None,
        True,
    )


def test_the_environment_tells_what_was_said() -> None:
    assert publication_of({PUBLISH: PUBLICATION.text()}) == PUBLICATION
    with pytest.raises(InvalidInput, match=PUBLISH):
        publication_of({})
