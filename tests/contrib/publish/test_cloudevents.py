"""Events as CloudEvents 1.0: what each attribute says, what is sent together, and what is too large."""

from __future__ import annotations

import base64
import json
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pytest

from epochal import json_codec, upcast
from epochal.contrib.publish.cloudevents import CloudEvent, Keep, Message, batches, cloud_event, message
from epochal.contrib.publish.publication import PUBLISH, Publication, publication_of, publisher
from epochal.contrib.publish.recipients import LIMITS
from epochal.contrib.subjects.sealing import encrypt, write_sealed
from epochal.deciders.codecs import EventCodec
from epochal.errors import CorruptData, InvalidInput, Unavailable, UnknownType
from epochal.feed.events import FeedEvent
from epochal.reactions.definition import Delivery
from epochal.testing.stores import MemoryBodies

BYTES = LIMITS["webhook"].message
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


def sent(event: FeedEvent, codec: EventCodec[Any] | None = None, keep: Keep = nowhere) -> Message:
    seen = cloud_event(event, codec)
    assert seen is not None
    return message(event, seen, "epochal/shop", keep=keep, most=BYTES)


def shown(event: FeedEvent, codec: EventCodec[Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sent(event, codec).text)
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
    text = sent(event).text
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
    text = sent(event).text
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
    def of(size: int, number: int) -> Message:
        return Message(id=str(number), source="s", type="t", group="g", text="x" * size)

    def batched(messages: list[Message]) -> list[list[Message]]:
        return list(batches(messages, events=10, size=BYTES))

    small = [of(10, number) for number in range(21)]
    assert [len(each) for each in batched(small)] == [10, 10, 1]
    assert [each for batch in batched(small) for each in batch] == small
    large = [of(BYTES // 2, number) for number in range(3)]
    assert [len(each) for each in batched(large)] == [2, 1]
    assert batched([]) == []


def test_sizes_are_bytes_and_not_characters() -> None:
    kept: list[bytes] = []

    def keep(content: bytes) -> str:
        kept.append(content)
        return "s3://b/k"

    def of(characters: int) -> Message:
        data = f'"{"é" * characters}"'.encode()
        return sent(FeedEvent(stream="Order-7", index=0, type="Placed", data=data), keep=keep)

    assert "dataref" in of(BYTES // 2 + 1).text
    assert len(kept) == 1
    fits = of(BYTES // 2 - 300)
    assert "dataref" not in fits.text
    assert [len(each) for each in batches([fits, fits], events=10, size=BYTES)] == [1, 1]


class Taken:
    """A recipient that takes so many batches, and no more."""

    def __init__(self, most: int = 1_000) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self._most = most

    def __call__(self, events: Sequence[Message]) -> None:
        if len(self.batches) == self._most:
            raise Unavailable("enough")
        self.batches.append([json.loads(each.text) for each in events])


PUBLICATION = Publication(
    name="publish-orders", to="webhook", place="https://q", source="epochal/shop", categories=("Order",)
)


def delivery(*events: FeedEvent) -> Delivery:
    return Delivery(group="publish-orders", partition=0, stream="Order-7", events=events)


def test_what_is_too_large_for_a_message_is_referred_to_and_can_be_got() -> None:
    large = FeedEvent(stream="Order-7", index=0, type="Placed", data=b"\x00" * BYTES)
    kept, taken = MemoryBodies(), Taken()
    publisher(PUBLICATION, kept, "shop-bodies", taken)(delivery(large))
    ((found,),) = taken.batches
    bucket, _, key = found["dataref"].removeprefix("s3://").partition("/")
    assert (bucket, kept.objects[key]) == ("shop-bodies", large.data)
    assert not {"data", "data_base64"} & found.keys()
    with pytest.raises(InvalidInput, match="is needed for events that are too large"):
        publisher(PUBLICATION, None, "", Taken())(delivery(large))


def test_a_delivery_is_sent_in_order_without_what_is_gone() -> None:
    gone = FeedEvent(stream="Order-7", index=0, type="", gone="pruned")
    events = [FeedEvent(stream="Order-7", index=number, type="Placed") for number in range(1, 15)]
    taken = Taken()
    publisher(PUBLICATION, MemoryBodies(), "b", taken)(delivery(gone, *events))
    assert [each["id"] for batch in taken.batches for each in batch] == [f"Order-7@{k}" for k in range(1, 15)]


def test_a_delivery_fails_that_is_not_taken_and_comes_again_with_the_same_ids() -> None:
    events = [FeedEvent(stream="Order-7", index=number, type="Placed") for number in range(12)]
    first, again = Taken(most=1), Taken()
    with pytest.raises(Unavailable):
        publisher(PUBLICATION, MemoryBodies(), "b", first)(delivery(*events))
    publisher(PUBLICATION, MemoryBodies(), "b", again)(delivery(*events))
    assert again.batches[0] == first.batches[0]


def test_it_is_a_reaction_to_what_was_chosen_once_for_each_event() -> None:
    chosen = publisher(PUBLICATION, MemoryBodies(), "b", Taken())
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


def of_order(**fields: Any) -> FeedEvent:
    return FeedEvent(**{"stream": "Order-7", "index": 3, "type": "Placed", **fields})


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_metadata_are_extensions_and_what_cannot_be_one_is_kept_together() -> None:
    meta = {
        "traceparent": TRACE,
        "user": "ada",
        "attempt": 2,
        "dry": False,
        "tracestate": "a=1",
        "userId": "a-1",
        "large": 2**31,
        "price": 1.5,
        "roles": ["a"],
        "sequence": "not mine",
        "lines": "a\nb",
    }
    found = shown(of_order(data=b"{}", meta=json.dumps(meta).encode()))
    extensions = {name: found[name] for name in ("traceparent", "tracestate", "user", "attempt", "dry")}
    assert extensions == {name: meta[name] for name in extensions}
    assert found["sequence"] == "00000000000000000003"
    assert json.loads(found["metadata"]) == {name: meta[name] for name in meta if name not in extensions}


@pytest.mark.parametrize(
    "name",
    [
        *("id", "source", "type", "subject", "time", "specversion", "datacontenttype", "data", "dataref"),
        *("partitionkey", "correlationid", "causationid", "tags", "dataversion", "sealed", "metadata"),
    ],
)
def test_metadata_never_stand_in_the_place_of_what_an_event_says_itself(name: str) -> None:
    """`data` twice in a message is the metadata's to a parser that takes the last."""
    meta = {name: "forged"}
    plain, text = (sent(of_order(data=b"1", meta=each)).text for each in (b"", json.dumps(meta).encode()))
    members = json.loads(text, object_pairs_hook=list)
    assert dict(members).keys() == {*json.loads(plain), "metadata"}
    assert len(dict(members)) == len(members)
    assert json.loads(text) == {**json.loads(plain), "metadata": dict(members)["metadata"]}
    assert json.loads(dict(members)["metadata"]) == meta


def test_metadata_that_are_no_object_are_not_lost_and_a_tagged_events_user_is_an_extension() -> None:
    assert shown(of_order(meta=b'["a"]'))["metadata"] == '["a"]'
    assert base64.b64decode(shown(of_order(meta=b"\xff"))["metadatabase64"]) == b"\xff"
    assert shown(of_order(id="e-1", tags=("a:1",), user="ada"))["user"] == "ada"
    assert not {"user", "metadata"} & shown(of_order()).keys()
    both = shown(of_order(id="e-1", tags=("a:1",), user="ada", meta=b'{"user":"eve"}'))
    assert (both["user"], both["metadata"]) == ("ada", '{"user":"eve"}')


@pytest.mark.parametrize(
    ("data", "text", "version"),
    [
        (b'{"$v":3,"total":12.50}', '{"total":12.50}', "3"),
        (b' { "$v" : 12 , "total": 1e999}', '{"total": 1e999}', "12"),
        (b'{"$v":2}', "{}", "2"),
        (b'{"total":12.50,"$v":3}', '{"total":12.50}', "3"),
        (b'{"note":{"$v":3}}', '{"note":{"$v":3}}', None),
        (b'{"note":"\\"$v\\""}', '{"note":"\\"$v\\""}', None),
    ],
)
def test_the_mark_of_a_version_is_ours_and_is_an_attribute_to_others(
    data: bytes, text: str, version: str | None
) -> None:
    found = sent(of_order(data=data)).text
    assert found.endswith(f',"data":{text}}}')
    assert json.loads(found).get("dataversion") == version


@dataclass(frozen=True)
class Placed:
    total: Decimal
    currency: str


@upcast("Placed", 1, to=2)
def with_currency(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "currency": "EUR"}


def test_with_a_codec_events_are_sent_as_of_today() -> None:
    codec = json_codec(Placed, upcasts=[with_currency])
    old = sent(of_order(data=b'{"total": 12.50}'), codec).text
    new = sent(of_order(data=codec.encode(Placed(Decimal("12.50"), "EUR")).content), codec).text
    assert old == new
    assert old.endswith('"data":{"total":12.50,"currency":"EUR"}}')
    assert json.loads(old)["dataversion"] == "2"


def test_a_type_that_the_codec_does_not_know_fails_or_is_passed_over_as_the_codec_says() -> None:
    with pytest.raises(UnknownType):
        cloud_event(of_order(type="Painted", data=b"{}"), json_codec(Placed))
    assert cloud_event(of_order(type="Painted", data=b"{}"), json_codec(Placed, skips_unknown=True)) is None


@pytest.mark.parametrize("codec", [None, json_codec(Placed)], ids=["as stored", "with a codec"])
def test_what_is_sealed_stays_sealed_and_says_so(codec: EventCodec[Any] | None) -> None:
    body = write_sealed(encrypt(bytes(32), "Customer-1", bytes(12), b'{"total":1}'))
    found = shown(of_order(data=body), codec)
    assert found["sealed"] is True
    assert found["data"] == json.loads(body)
    assert "sealed" not in shown(of_order(data=b'{"sealed":1}'))


def changed(event: FeedEvent) -> CloudEvent | None:
    """A mapping as a user writes it."""
    if event.type == "Noted":
        return None
    value = {"order": event.stream.removeprefix("Order-"), "total": event.json()["total"]}
    return CloudEvent(
        type="com.example.placed.v1", data=value, subject="orders/7", extensions={"tenant": "north"}
    )


def test_a_mapping_says_what_is_shown_of_an_event_and_which_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("mine")
    module.changed = changed  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mine", module)
    taken = Taken()
    publication = replace(PUBLICATION, mapping="mine:changed")
    events = [of_order(index=0, type="Noted"), of_order(index=1, data=b'{"total":12.5,"secret":1}')]
    publisher(publication, MemoryBodies(), "b", taken)(delivery(*events))
    assert taken.batches == [
        [
            {
                "specversion": "1.0",
                "id": "Order-7@1",
                "source": "epochal/shop",
                "type": "com.example.placed.v1",
                "subject": "orders/7",
                "tenant": "north",
                "datacontenttype": "application/json",
                "data": {"order": "7", "total": 12.5},
            }
        ]
    ]


@pytest.mark.parametrize(
    ("what", "field"),
    [
        ({"type": ""}, "type"),
        ({"time": "yesterday"}, "time"),
        ({"time": "2026-11-22T10:00:00Z or so"}, "time"),
        ({"extensions": {"Tenant": "a"}}, "extensions.Tenant"),
        ({"extensions": {"source": "a"}}, "extensions.source"),
        ({"extensions": {"price": 1.5}}, "extensions.price"),
        ({"extensions": {"large": 2**31}}, "extensions.large"),
        ({"data": {1, 2}}, "data"),
    ],
)
def test_what_is_no_cloud_event_is_refused_with_its_place(what: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        message(PLACED, CloudEvent(**{"type": "t", **what}), "s")
    assert refused.value.field == field
    with pytest.raises(InvalidInput, match="must return a CloudEvent or None, not dict"):
        message(PLACED, {"type": "t"}, "s")  # type: ignore[arg-type]


def test_a_content_type_that_is_no_json_keeps_bytes_as_they_are() -> None:
    def of(data: Any, kind: str) -> dict[str, Any]:
        seen = CloudEvent(type="t", data=data, content_type=kind)
        found: dict[str, Any] = json.loads(message(PLACED, seen, "s").text)
        return found

    assert base64.b64decode(of(b"1,2", "text/csv")["data_base64"]) == b"1,2"
    assert of(b'{"a":1}', "application/vnd.a+json") | {"data": {"a": 1}} == of(
        b'{"a":1}', "application/vnd.a+json"
    )
    assert "data" not in of(b"12", "text/plain")


def test_a_message_is_as_large_as_the_publication_says() -> None:
    taken = Taken()
    kept = MemoryBodies()
    publisher(replace(PUBLICATION, message_bytes=300), kept, "b", taken)(
        delivery(of_order(data=b"1"), of_order(data=b"1" * 100))
    )
    assert [["dataref" in each for each in batch] for batch in taken.batches] == [[False], [True]]
