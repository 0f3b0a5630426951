"""Where published events go: a bus of EventBridge, a queue, a topic, a stream of Kinesis, a delivery stream of
Firehose, or an HTTPS address.

Each takes a batch, in order, or raises; the whole batch may be sent again, since its events are named. A FIFO queue or
topic, or a stream of Kinesis, has then taken the events before one that it has not taken, and none after it.

What each takes is in one table, `LIMITS`. Queues and topics have limits of their own below that, which are asked for:
a topic takes 256 KiB unless its `MaximumMessageSize` says more, an older queue likewise.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from epochal.contrib.publish.cloudevents import Message
from epochal.contrib.publish.webhook import Proof, to_webhook
from epochal.dynamo.aws_errors import translate_errors
from epochal.dynamo.clients import service_client
from epochal.dynamo.interpreter import lazily
from epochal.errors import EpochalError, InvalidInput, Unavailable
from epochal.lazy_dataclasses import dataclass, replace

Send = Callable[[Sequence[Message]], None]

PARTITION_KEY: Final = 256
"""Characters of a key that tells which shard of Kinesis a record goes to."""

DETAIL_TYPE: Final = 128
"""Characters that a bus takes of a type; the event itself has all of it."""

CONTENT_TYPE: Final = "application/cloudevents+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a recipient takes.

    Attributes:
        message: bytes of one event as a message, at most; less than AWS says, by what is around it.
        request: bytes of all messages of a request.
        messages: of a request.
    """

    message: int
    request: int
    messages: int = 10


_AROUND: Final = 16 * 1024
"""Bytes left for what is sent beside a message and counts: source, type, attributes, keys."""

_KIB, _MB = 1024, 1_000_000

LIMITS: Final = {
    "bus": Limit(
        message=_MB - _AROUND, request=_MB - _AROUND
    ),  # 1 MB an entry and a request, since January 2026
    "queue": Limit(message=_KIB**2 - _AROUND, request=_KIB**2 - _AROUND),  # 1 MiB, since August 2025
    "topic": Limit(message=_KIB**2 - _AROUND, request=_KIB**2 - _AROUND),  # 1 MiB, where the topic says so
    "stream": Limit(
        message=_KIB**2 - _AROUND, request=_KIB**2, messages=500
    ),  # up to 10 MiB, where the stream says so
    "firehose": Limit(message=1_000 * _KIB - _AROUND, request=4 * _KIB**2 - _AROUND, messages=500),
    "webhook": Limit(message=256 * _KIB - _AROUND, request=256 * _KIB - _AROUND),  # ours: addresses differ
}
"""By kinds of recipients. https://docs.aws.amazon.com: quotas of EventBridge, SQS, SNS, Kinesis and Firehose."""

UNTOLD: Final = 256 * _KIB - _AROUND
"""What queues and topics took for years: assumed where one does not say what it takes."""


def limit_of(kind: str, place: str, most: int | None = None, *, client: Any = None) -> Limit:
    """What the recipient takes, as it says itself or `most` does; raises `InvalidInput` where there is no such kind."""
    if kind not in LIMITS:
        raise InvalidInput("to", f"must be {', '.join(LIMITS)}")
    limit = LIMITS[kind]
    if most is None and kind in ("queue", "topic"):
        most = _told_by(kind, client or lazily(partial(service_client, _SENDERS[kind][0])), place)
    if most is None:
        return limit
    return replace(limit, message=most, request=max(most, limit.request) if kind == "stream" else most)


def _told_by(kind: str, client: Any, place: str) -> int:
    """`MaximumMessageSize` of a queue or topic. One of another account may send without letting anyone look."""
    try:
        with translate_errors("MaximumMessageSize"):
            if kind == "queue":
                answer = client.get_queue_attributes(QueueUrl=place, AttributeNames=["MaximumMessageSize"])
            else:
                answer = client.get_topic_attributes(TopicArn=place)
    except EpochalError:
        return UNTOLD
    told = int(answer.get("Attributes", {}).get("MaximumMessageSize", 0))
    return min(told - _AROUND, LIMITS[kind].message) if told > _AROUND else UNTOLD


def recipient(kind: str, place: str, *, client: Any = None, proof: Proof | None = None) -> Send:
    """What sends to a `bus` (its name or ARN), a `queue` (its URL), a `topic` or a `stream` of Kinesis (its ARN), a
    delivery stream of `firehose` (its name) or a `webhook` (its address, to which `proof` tells who sends).

    Raises:
        InvalidInput: there is no such kind.
    """
    if kind not in LIMITS:
        raise InvalidInput("to", f"must be {', '.join(LIMITS)}")
    if kind == "webhook":
        return to_webhook(place, proof or Proof())
    service, send = _SENDERS[kind]
    return partial(send, client or lazily(partial(service_client, service)), place)


def _to_bus(client: Any, bus: str, events: Sequence[Message]) -> None:
    entries = [
        {
            "EventBusName": bus,
            "Source": each.source,
            "DetailType": each.type[:DETAIL_TYPE],
            "Detail": each.text,
        }
        for each in events
    ]
    with translate_errors("PutEvents"):
        answer = client.put_events(Entries=entries)
    _all_taken([each["ErrorCode"] for each in answer["Entries"] if "ErrorCode" in each], events)


def _to_queue(client: Any, url: str, events: Sequence[Message]) -> None:
    for part in _requests(events, url):
        entries = [
            {"Id": str(number), "MessageBody": each.text, **_attributes(), **_ordered(each, url)}
            for number, each in enumerate(part)
        ]
        with translate_errors("SendMessageBatch"):
            answer = client.send_message_batch(QueueUrl=url, Entries=entries)
        _all_taken([each["Code"] for each in answer.get("Failed", ())], part)


def _to_topic(client: Any, arn: str, events: Sequence[Message]) -> None:
    for part in _requests(events, arn):
        entries = [
            {"Id": str(number), "Message": each.text, **_attributes(each), **_ordered(each, arn)}
            for number, each in enumerate(part)
        ]
        with translate_errors("PublishBatch"):
            answer = client.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
        _all_taken([each["Code"] for each in answer.get("Failed", ())], part)


def _to_stream(client: Any, arn: str, events: Sequence[Message]) -> None:
    """One by one: of a batch, a later event of a stream may be taken where an earlier one is not. A shard takes what
    has one partition key, in the order of its requests.
    """
    for each in events:
        with translate_errors("PutRecord"):
            client.put_record(StreamARN=arn, PartitionKey=each.group[:PARTITION_KEY], Data=each.text.encode())


def _to_firehose(client: Any, name: str, events: Sequence[Message]) -> None:
    """A line each: what Firehose writes are records end to end. Those that are not taken are sent again by themselves:
    it keeps no order, and the rest would come twice.
    """
    records, failed = [{"Data": f"{each.text}\n".encode()} for each in events], list[str]()
    for pause in (*AGAIN, None):
        with translate_errors("PutRecordBatch"):
            answer = client.put_record_batch(DeliveryStreamName=name, Records=records)
        said = [each.get("ErrorCode") for each in answer["RequestResponses"]]
        records = [each for each, code in zip(records, said, strict=True) if code]
        failed = [code for code in said if code]
        if not failed or pause is None:
            break
        time.sleep(pause)
    _all_taken(failed, events)


AGAIN: Final = (0.1, 0.4, 1.6)
"""Seconds between the tries of records that Firehose does not take: it is over its limit of the second."""

_SENDERS: Final[dict[str, tuple[str, Callable[[Any, str, Sequence[Message]], None]]]] = {
    "bus": ("events", _to_bus),
    "queue": ("sqs", _to_queue),
    "topic": ("sns", _to_topic),
    "stream": ("kinesis", _to_stream),
    "firehose": ("firehose", _to_firehose),
}
"""By kinds of recipients: the service, and what sends to it."""


def _attributes(event: Message | None = None) -> dict[str, Any]:
    """By which receivers know what a message is; subscriptions of a topic filter by the type."""
    told = {"content-type": CONTENT_TYPE} | ({"type": event.type} if event else {})
    return {
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value} for name, value in told.items()
        }
    }


def _requests(events: Sequence[Message], place: str) -> Iterable[Sequence[Message]]:
    """What is sent at once: all, but in order one by one, since of a batch a later event may be taken alone."""
    return ([each] for each in events) if _keeps_order(place) else [events]


def _keeps_order(place: str) -> bool:
    return place.endswith(".fifo")


def _ordered(event: Message, place: str) -> dict[str, str]:
    """In a FIFO queue or topic, a stream keeps its order, and what was sent already is dropped."""
    if not _keeps_order(place):
        return {}
    names = {"MessageGroupId": event.group, "MessageDeduplicationId": f"{event.source} {event.id}"}
    return {name: hashlib.sha256(each.encode()).hexdigest() for name, each in names.items()}


def _all_taken(failed: Sequence[str], events: Sequence[Message]) -> None:
    if failed:
        raise Unavailable(f"{len(failed)} of {len(events)} events were not taken: {failed[0]}")
