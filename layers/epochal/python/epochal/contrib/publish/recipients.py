"""Where published events go: a bus of EventBridge, a queue, a topic, a stream of Kinesis, a delivery stream of
Firehose, or an HTTPS address.

Each takes a batch, in order, or raises; the whole batch may be sent again, since its events are named. A FIFO queue or
topic, or a stream of Kinesis, has then taken the events before one that it has not taken, and none after it.

What each takes is in one table, `LIMITS`. Queues and topics have limits of their own below that, which are asked for:
a topic takes 256 KiB unless its `MaximumMessageSize` says more, an older queue likewise.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from epochal.contrib.publish.cloudevents import Message
from epochal.contrib.publish.sequence_numbers import SequenceNumbers
from epochal.contrib.publish.webhook import Proof, to_webhook
from epochal.dynamo.aws_errors import translate_errors
from epochal.dynamo.clients import service_client
from epochal.dynamo.lazy_clients import lazily
from epochal.errors import EpochalError, InvalidInput, InvalidRequest, Unavailable
from epochal.lazy_dataclasses import dataclass, replace

Send = Callable[[Sequence[Message]], None]

PARTITION_KEY: Final = 256
"""Maximum characters of a Kinesis partition key."""

DETAIL_TYPE: Final = 128
"""Maximum characters of a detail type on a bus; the event itself has its whole type."""

CONTENT_TYPE: Final = "application/cloudevents+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Limits of a recipient.

    Attributes:
        message: maximum bytes of one event as a message; less than the limit of AWS, by what is sent beside it.
        request: maximum bytes of all messages of a request.
        messages: maximum number of messages of a request.
    """

    message: int
    request: int
    messages: int = 10


_AROUND: Final = 16 * 1024
"""Bytes reserved for what counts besides a message: source, type, attributes and keys."""

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
"""Limits by kinds of recipients.

https://docs.aws.amazon.com: quotas of EventBridge, SQS, SNS, Kinesis and Firehose.
"""

UNTOLD: Final = 256 * _KIB - _AROUND
"""Bytes of a message that queues and topics accepted for years: assumed if one does not state its limit."""


def limit_of(kind: str, place: str, most: int | None = None, *, client: Any = None) -> Limit:
    """Return the limits of a recipient: `most` bytes for a message, or what the queue or topic states.

    Other kinds have the limit in `LIMITS`.

    Args:
        client: an SQS or SNS client; made at its first use if it is not given.

    Raises:
        InvalidInput: there is no such kind.
    """
    if kind not in LIMITS:
        raise InvalidInput("to", f"must be one of {', '.join(LIMITS)}")
    limit = LIMITS[kind]
    if most is None and kind in ("queue", "topic"):
        most = _told_by(kind, client or lazily(partial(service_client, _SENDERS[kind][0])), place)
    if most is None:
        return limit
    return replace(limit, message=most, request=max(most, limit.request) if kind == "stream" else most)


def _told_by(kind: str, client: Any, place: str) -> int:
    """Read the maximum message size of a queue or topic; return a default if that is not allowed.

    One in another account may accept messages without letting the sender read its attributes.
    """
    try:
        with translate_errors("MaximumMessageSize"):
            if kind == "queue":
                answer = client.get_queue_attributes(QueueUrl=place, AttributeNames=["MaximumMessageSize"])
            else:
                answer = client.get_topic_attributes(TopicArn=place)
    except EpochalError:
        return UNTOLD
    limit = int(answer.get("Attributes", {}).get("MaximumMessageSize", 0))
    return min(limit - _AROUND, LIMITS[kind].message) if limit > _AROUND else UNTOLD


def recipient(kind: str, place: str, *, client: Any = None, proof: Proof | None = None) -> Send:
    """Make the function that sends batches of messages to a recipient, such as a queue or a webhook.

    Args:
        kind: a key of `LIMITS`.
        place: name or ARN of a `bus`, URL of a `queue`, ARN of a `topic` or a Kinesis `stream`, name of a `firehose`
            delivery stream, or address of a `webhook`.
        client: a client of the kind's service; made at its first use if it is not given.
        proof: proof of the sender, for a webhook.

    Raises:
        InvalidInput: there is no such kind.
    """
    if kind not in LIMITS:
        raise InvalidInput("to", f"must be one of {', '.join(LIMITS)}")
    if kind == "webhook":
        return to_webhook(place, proof or Proof())
    service, send = _SENDERS[kind]
    if kind == "stream":
        send = partial(send, numbers=SequenceNumbers())
    return partial(send, client or lazily(partial(service_client, service)), place)


def _to_bus(client: Any, bus: str, events: Sequence[Message]) -> None:
    """Send a batch of messages to an EventBridge bus in one request; raise `Unavailable` if any failed."""
    entries = [
        {
            "EventBusName": bus,
            "Source": event.source,
            "DetailType": event.type[:DETAIL_TYPE],
            "Detail": event.text,
        }
        for event in events
    ]
    with translate_errors("PutEvents"):
        answer = client.put_events(Entries=entries)
    _all_taken([entry["ErrorCode"] for entry in answer["Entries"] if "ErrorCode" in entry], events)


def _to_queue(client: Any, url: str, events: Sequence[Message]) -> None:
    """Send a batch of messages to a queue; one by one if it is FIFO. Raise `Unavailable` if any failed."""
    for part in _requests(events, url):
        entries = [
            {"Id": str(number), "MessageBody": entry.text, **_attributes(), **_ordered(entry, url)}
            for number, entry in enumerate(part)
        ]
        with translate_errors("SendMessageBatch"):
            answer = client.send_message_batch(QueueUrl=url, Entries=entries)
        _all_taken([entry["Code"] for entry in answer.get("Failed", ())], part)


def _to_topic(client: Any, arn: str, events: Sequence[Message]) -> None:
    """Send a batch of messages to a topic; one by one if it is FIFO. Raise `Unavailable` if any failed."""
    for part in _requests(events, arn):
        entries = [
            {"Id": str(number), "Message": entry.text, **_attributes(entry), **_ordered(entry, arn)}
            for number, entry in enumerate(part)
        ]
        with translate_errors("PublishBatch"):
            answer = client.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
        _all_taken([entry["Code"] for entry in answer.get("Failed", ())], part)


def _to_stream(client: Any, arn: str, events: Sequence[Message], *, numbers: SequenceNumbers) -> None:
    """Send messages to a Kinesis stream one by one, so that the order within each group is kept.

    In a batch, a later record could be accepted when an earlier one is not. Each record names the one before it of its
    partition key, without which Kinesis orders them only roughly, by the time of their arrival.
    """
    for event in events:
        key = event.group[:PARTITION_KEY]
        put = partial(client.put_record, StreamARN=arn, PartitionKey=key, Data=event.text.encode())
        answer = _put_after(put, numbers.last(key))
        numbers.keep(key, answer["SequenceNumber"])


def _put_after(put: Callable[..., dict[str, Any]], last: str | None) -> dict[str, Any]:
    """Put a record after the one with number `last`, or without it if its shard does not take that."""
    if last is not None:
        try:
            with translate_errors("PutRecord"):
                return put(SequenceNumberForOrdering=last)
        except InvalidRequest as error:  # the shard was split or merged since
            if error.code != "InvalidArgumentException":
                raise
    with translate_errors("PutRecord"):
        return put()


def _to_firehose(client: Any, name: str, events: Sequence[Message]) -> None:
    """Send messages to a delivery stream, a line each, with retries; raise `Unavailable` if some fail.

    Firehose writes records one directly after another, so each ends with a line break. It keeps no order, so the
    failed records can be sent alone, and the others do not come twice.

    Raises:
        Unavailable: records still failed after the last retry.
    """
    records, failed = [{"Data": f"{event.text}\n".encode()} for event in events], list[str]()
    for pause in (*AGAIN, None):
        with translate_errors("PutRecordBatch"):
            answer = client.put_record_batch(DeliveryStreamName=name, Records=records)
        codes = [entry.get("ErrorCode") for entry in answer["RequestResponses"]]
        records = [entry for entry, code in zip(records, codes, strict=True) if code]
        failed = [code for code in codes if code]
        if not failed or pause is None:
            break
        time.sleep(pause)
    _all_taken(failed, events)


AGAIN: Final = (0.1, 0.4, 1.6)
"""Seconds between attempts to send records that Firehose rejects because its limit per second is exceeded."""

_SENDERS: Final[dict[str, tuple[str, Callable[..., None]]]] = {
    "bus": ("events", _to_bus),
    "queue": ("sqs", _to_queue),
    "topic": ("sns", _to_topic),
    "stream": ("kinesis", _to_stream),
    "firehose": ("firehose", _to_firehose),
}
"""The service and the sending function, by kinds of recipients."""


def _attributes(event: Message | None = None) -> dict[str, Any]:
    """Return the message attributes by which receivers recognize a message: content type and event type.

    Subscriptions of a topic filter by the type.
    """
    attributes = {"content-type": CONTENT_TYPE} | ({"type": _deliverable(event.type)} if event else {})
    return {
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        }
    }


_UNDELIVERABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ufffe\uffff]")
"""Characters of an attribute for which SNS drops a message on its way to a queue, after it has accepted it."""


def _deliverable(text: str) -> str:
    """Return a text as an attribute that SNS delivers: control characters are percent-encoded."""
    return _UNDELIVERABLE.sub(lambda match_: quote(match_[0]), text)


def _requests(events: Sequence[Message], place: str) -> Iterable[Sequence[Message]]:
    """Divide messages into requests: all in one, or one each for a FIFO queue or topic.

    In a batch to a FIFO queue, a later message could be accepted when an earlier one is not.
    """
    return ([event] for event in events) if _keeps_order(place) else [events]


def _keeps_order(place: str) -> bool:
    """Whether a queue or topic is FIFO, by the end of its name."""
    return place.endswith(".fifo")


def _ordered(event: Message, place: str) -> dict[str, str]:
    """Return the group and deduplication ids of a message to a FIFO queue or topic; nothing for others.

    They keep the order of each stream, and drop messages that were sent before.
    """
    if not _keeps_order(place):
        return {}
    names = {"MessageGroupId": event.group, "MessageDeduplicationId": f"{event.source} {event.id}"}
    return {name: hashlib.sha256(value.encode()).hexdigest() for name, value in names.items()}


def _all_taken(failed: Sequence[str], events: Sequence[Message]) -> None:
    """Raise `Unavailable` if any of the messages failed, with the first error code."""
    if failed:
        raise Unavailable(f"{len(failed)} of {len(events)} events were not accepted: {failed[0]}")
