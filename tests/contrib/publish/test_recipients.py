"""What a bus, a queue and a topic are asked for published events, and what it means that they took a part of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from epochal.contrib.publish.cloudevents import Message
from epochal.contrib.publish.recipients import (
    AGAIN,
    DETAIL_TYPE,
    LIMITS,
    PARTITION_KEY,
    UNTOLD,
    limit_of,
    recipient,
)
from epochal.errors import EpochalError, InvalidInput, InvalidRequest, Unavailable

EVENTS = [
    Message(
        id=f"Order-{number % 2}@{number}",
        source="shop",
        type="Placed",
        group=f"Order-{number % 2}",
        text="{}",
    )
    for number in range(10)
]
PLACES = {
    "bus": "shop",
    "queue": "https://sqs/q",
    "topic": "arn:aws:sns:eu-central-1:1:t",
    "stream": "arn:aws:kinesis:eu-central-1:1:stream/s",
    "firehose": "lake",
}
BATCHES = [kind for kind in PLACES if kind != "stream"]
FIFOS = {kind: f"{PLACES[kind]}.fifo" for kind in ("queue", "topic")}


class Client:
    """Takes all entries but those that it is told to fail, by their places, or answers with an error."""

    def __init__(self, failing: set[int] | None = None, error: str = "") -> None:
        self.failing, self.error = failing or set(), error
        self.entries: list[dict[str, Any]] = []
        self.taken: list[int] = []

    def _take(self, entries: list[dict[str, Any]]) -> list[int]:
        if self.error:
            raise ClientError({"Error": {"Code": self.error, "Message": "no"}}, "Send")
        places = range(len(self.entries), len(self.entries) + len(entries))
        self.entries += entries
        self.taken += [each for each in places if each not in self.failing]
        return [each - places[0] for each in sorted(self.failing & set(places))]

    def put_events(self, **asked: Any) -> dict[str, Any]:
        entries = asked["Entries"]
        failed = self._take(entries)
        answers = [
            {"ErrorCode": "InternalFailure"} if k in failed else {"EventId": str(k)}
            for k in range(len(entries))
        ]
        return {"FailedEntryCount": len(failed), "Entries": answers}

    def send_message_batch(self, **asked: Any) -> dict[str, Any]:
        failed = self._take(asked["Entries"])
        return {"Successful": [], "Failed": [{"Id": str(k), "Code": "InternalFailure"} for k in failed]}

    def publish_batch(self, **asked: Any) -> dict[str, Any]:
        return self.send_message_batch(Entries=asked["PublishBatchRequestEntries"])

    def put_record_batch(self, **asked: Any) -> dict[str, Any]:
        assert asked["DeliveryStreamName"] == "lake"
        failed = self._take(asked["Records"])
        answers = [
            {"ErrorCode": "InternalFailure"} if k in failed else {"RecordId": str(k)}
            for k in range(len(asked["Records"]))
        ]
        return {"FailedPutCount": len(failed), "RequestResponses": answers}

    def put_record(self, **asked: Any) -> dict[str, Any]:
        assert asked["StreamARN"] == PLACES["stream"]
        if self._take([asked]):
            raise ClientError({"Error": {"Code": "InternalFailure", "Message": "no"}}, "PutRecord")
        return {"ShardId": "0", "SequenceNumber": "1"}


@pytest.mark.parametrize("kind", [kind for kind in BATCHES if kind != "firehose"])
@pytest.mark.parametrize("failing", [{0}, {9}, set(range(10))])
def test_a_batch_of_which_one_event_is_not_taken_has_failed(kind: str, failing: set[int]) -> None:
    with pytest.raises(Unavailable, match=f"{len(failing)} of 10 events were not accepted: InternalFailure"):
        recipient(kind, PLACES[kind], client=Client(failing))(EVENTS)


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("error", ["AccessDeniedException", "ThrottlingException", "InternalFailure"])
def test_an_answer_that_is_an_error_is_one_of_ours(kind: str, error: str) -> None:
    with pytest.raises(EpochalError):
        recipient(kind, PLACES[kind], client=Client(error=error))(EVENTS)


@pytest.mark.parametrize("kind", PLACES)
def test_a_batch_that_is_taken_says_nothing(kind: str) -> None:
    client = Client()
    recipient(kind, PLACES[kind], client=client)(EVENTS)
    assert len(client.entries) == len(EVENTS)


@pytest.mark.parametrize("kind", FIFOS)
@pytest.mark.parametrize("failing", [0, 3, 9])
def test_in_order_nothing_is_taken_after_an_event_that_was_not(kind: str, failing: int) -> None:
    client = Client({failing})
    with pytest.raises(Unavailable, match="1 of 1 events were not accepted"):
        recipient(kind, FIFOS[kind], client=client)(EVENTS)
    assert client.taken == list(range(failing))


@pytest.mark.parametrize("kind", FIFOS)
def test_in_order_a_stream_is_a_group_and_an_event_has_one_name_per_source(kind: str) -> None:
    def sent(events: list[Message]) -> list[tuple[str, str]]:
        client = Client()
        recipient(kind, FIFOS[kind], client=client)(events)
        return [(each["MessageGroupId"], each["MessageDeduplicationId"]) for each in client.entries]

    first = sent(EVENTS)
    assert sent(EVENTS) == first
    groups, names = zip(*first, strict=True)
    assert [groups.index(each) for each in groups] == [0, 1] * 5
    assert len(set(names)) == len(EVENTS)
    other = [Message(id=e.id, source="kennel", type=e.type, group=e.group, text=e.text) for e in EVENTS]
    assert not set(names) & {name for _, name in sent(other)}
    assert all(len(each) <= 128 and each.isalnum() for each in (*groups, *names))


@pytest.mark.parametrize("kind", FIFOS)
def test_what_keeps_no_order_gets_no_group(kind: str) -> None:
    client = Client()
    recipient(kind, PLACES[kind], client=client)(EVENTS)
    assert not any("MessageGroupId" in each for each in client.entries)


def test_messages_say_what_they_are_and_those_of_a_topic_their_type() -> None:
    def attributes(kind: str) -> dict[str, Any]:
        client = Client()
        recipient(kind, PLACES[kind], client=client)(EVENTS)
        given = client.entries[0]["MessageAttributes"].items()
        return {name: each["StringValue"] for name, each in given if each["DataType"] == "String"}

    assert attributes("queue") == {"content-type": "application/cloudevents+json"}
    assert attributes("topic") == {"content-type": "application/cloudevents+json", "type": "Placed"}


def test_a_bus_takes_the_beginning_of_a_type_that_is_long() -> None:
    client = Client()
    recipient("bus", "shop", client=client)(
        [Message(id="1", source="shop", type="T" * 500, group="g", text="{}")]
    )
    assert client.entries[0]["DetailType"] == "T" * DETAIL_TYPE


@pytest.mark.parametrize("failing", [0, 3, 9])
def test_a_stream_of_kinesis_takes_nothing_after_an_event_that_it_did_not_take(failing: int) -> None:
    client = Client({failing})
    with pytest.raises(EpochalError):
        recipient("stream", PLACES["stream"], client=client)(EVENTS)
    assert client.taken == list(range(failing))


def test_a_stream_of_kinesis_keeps_what_is_of_one_stream_in_one_shard_and_firehose_writes_lines() -> None:
    client = Client()
    recipient("stream", PLACES["stream"], client=client)([*EVENTS, message("G" * 300)])
    keys = [each["PartitionKey"] for each in client.entries]
    assert keys == ["Order-0", "Order-1"] * 5 + ["G" * PARTITION_KEY]
    assert {each["Data"] for each in client.entries} == {b"{}"}
    client = Client()
    recipient("firehose", "lake", client=client)(EVENTS)
    assert b"".join(each["Data"] for each in client.entries) == b"{}\n" * len(EVENTS)


def message(group: str) -> Message:
    return Message(id="1", source="shop", type="Placed", group=group, text="{}")


UNDELIVERABLE = [*map(chr, range(32)), *map(chr, range(127, 160)), "\ufffe", "\uffff"]


@pytest.mark.parametrize(
    ("kind", "attribute"),
    [
        ("Placed", "Placed"),
        ("Order placed: 100 %", "Order placed: 100 %"),
        ("Bestätigt ✓ \U0001f600", "Bestätigt ✓ \U0001f600"),
        ("a\tb", "a%09b"),
        ("a\r\nb", "a%0D%0Ab"),
        ("\uffff", "%EF%BF%BF"),
        ("\x85\x00", "%C2%85%00"),
    ],
)
def test_a_topic_gets_an_attribute_that_it_delivers(kind: str, attribute: str) -> None:
    client = Client()
    recipient("topic", PLACES["topic"], client=client)([replace(EVENTS[0], type=kind)])
    (entry,) = client.entries
    assert entry["MessageAttributes"]["type"]["StringValue"] == attribute


def test_no_character_that_a_topic_does_not_deliver_is_in_an_attribute() -> None:
    client = Client()
    recipient("topic", PLACES["topic"], client=client)([replace(EVENTS[0], type="".join(UNDELIVERABLE))])
    told = client.entries[0]["MessageAttributes"]["type"]["StringValue"]
    assert not set(told) & set(UNDELIVERABLE)


class Shards:
    """A stream of Kinesis that numbers its records, and knows the numbers of its last shards alone."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.since = 0

    def put_record(self, **asked: Any) -> dict[str, Any]:
        after = asked.get("SequenceNumberForOrdering")
        if after is not None and int(after) < self.since:
            raise ClientError({"Error": {"Code": "InvalidArgumentException", "Message": "no"}}, "PutRecord")
        self.entries.append(asked)
        return {"ShardId": "0", "SequenceNumber": str(100 + len(self.entries))}

    def after(self, group: str) -> list[str | None]:
        """The record after which each of a group is to come."""
        return [
            each.get("SequenceNumberForOrdering") for each in self.entries if each["PartitionKey"] == group
        ]


def test_each_record_of_a_stream_names_the_one_of_its_group_that_it_comes_after() -> None:
    client = Shards()
    send = recipient("stream", PLACES["stream"], client=client)
    send(EVENTS[:3])
    send(EVENTS[3:5])
    assert client.after("Order-0") == [None, "101", "103"]
    assert client.after("Order-1") == [None, "102"]


def test_a_record_whose_shard_does_not_know_the_one_before_is_sent_without_it() -> None:
    client = Shards()
    send = recipient("stream", PLACES["stream"], client=client)
    send(EVENTS[:1])
    client.since = 200
    send(EVENTS[2:3])
    client.since = 0
    send(EVENTS[4:5])
    assert client.after("Order-0") == [None, None, "102"]


class Sized:
    """A queue or a topic that says what it takes, or lets nobody look."""

    def __init__(self, told: str | None) -> None:
        self.told = told

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        if self.told is None:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetQueueAttributes")
        return {"Attributes": {"MaximumMessageSize": self.told} if self.told else {}}

    def get_topic_attributes(self, **_: Any) -> dict[str, Any]:
        return self.get_queue_attributes()


@pytest.mark.parametrize("kind", ["queue", "topic"])
@pytest.mark.parametrize(
    ("told", "most"),
    [("1048576", 1_032_192), ("262144", 245_760), ("99999999", 1_032_192), ("", UNTOLD), (None, UNTOLD)],
)
def test_a_queue_and_a_topic_say_what_they_take_and_the_least_is_assumed_of_others(
    kind: str, told: str | None, most: int
) -> None:
    limit = limit_of(kind, PLACES[kind], client=Sized(told))
    assert (limit.message, limit.request, limit.messages) == (most, most, 10)


@pytest.mark.parametrize("kind", LIMITS)
def test_what_is_said_of_sizes_counts_and_asks_nobody(kind: str) -> None:
    limit = limit_of(kind, "place", 5_000)
    assert limit.message == 5_000
    assert limit.request == (LIMITS[kind].request if kind == "stream" else 5_000)
    assert limit_of("stream", "place", 10_000_000).request == 10_000_000


@pytest.mark.parametrize("kind", LIMITS)
def test_no_request_is_larger_than_aws_takes(kind: str) -> None:
    aws = {
        "bus": (1_000_000, 1_000_000),
        "queue": (2**20, 2**20),
        "topic": (2**20, 2**20),
        "stream": (2**20, 10 * 2**20),
        "firehose": (1_000 * 2**10, 4 * 2**20),
        "webhook": (2**18, 2**18),
    }
    message, request = aws[kind]
    assert LIMITS[kind].message < message
    assert LIMITS[kind].message <= LIMITS[kind].request <= request


def test_a_recipient_that_there_is_not_is_refused() -> None:
    for refused in (recipient, limit_of):
        with pytest.raises(InvalidInput, match="must be one of bus, queue, topic, stream, firehose, webhook"):
            refused("pigeon", "home")  # type: ignore[operator]


def test_a_topic_that_is_not_there_is_no_body_that_is_missing() -> None:
    with pytest.raises(InvalidRequest, match="NotFound"):
        recipient("topic", PLACES["topic"], client=Client(error="NotFound"))(EVENTS)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Those that were made, in no time."""
    made: list[float] = []
    monkeypatch.setattr("epochal.contrib.publish.recipients.time.sleep", made.append)
    return made


@pytest.mark.parametrize("failing", [{0}, {3, 9, 11}, set(range(10))])
def test_records_that_firehose_does_not_take_are_sent_again_by_themselves(
    failing: set[int], pauses: list[float]
) -> None:
    """What it has taken would come twice."""
    client = Client(failing)
    events = [replace(each, text=f"{number}") for number, each in enumerate(EVENTS)]
    recipient("firehose", "lake", client=client)(events)
    taken = [int(client.entries[each]["Data"]) for each in client.taken]
    assert sorted(taken) == list(range(10))
    assert 1 <= len(pauses) <= 2


def test_a_record_that_firehose_never_takes_fails_the_delivery_in_the_end(pauses: list[float]) -> None:
    client = Client({2, 10, 11, 12})
    with pytest.raises(Unavailable, match="1 of 10 events were not accepted: InternalFailure"):
        recipient("firehose", "lake", client=client)(EVENTS)
    assert len(client.entries) == 13
    assert pauses == [*AGAIN]
